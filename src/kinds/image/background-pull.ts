/** Pulls that a client asked for without a workload (`POST /images`): the record says how far they are. */
import { parseReference } from "../../contract/image-reference.ts";
import { MINUTE_MS } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { failTag } from "./failed-tag.ts";
import { type ImageTag, tagsOf, typeOf } from "./images.ts";
import { eventTeller, pullingEvent, pullRecorded } from "./pull.ts";

/** A pull that goes on writes to its record more often than this. */
const SILENT_MAX_MS = MINUTE_MS;

type PullDeps = Parameters<typeof pullRecorded>[2];

/** Starts the pull of one tag of a record; the record becomes DEPLOYED or FAILED. */
export function beginPull(record: Resource, tag: ImageTag, deps: PullDeps): void {
  const { workspace, uid, name } = record;
  const reference = parseReference(tag.image ?? "");
  if (!reference) return;
  const place = { workspace, resourceType: typeOf(record), name, tag: tag.name };
  deps.puller.background(`${uid}/${tag.name}`, async (signal) => {
    const { tell, told } = eventTeller((message) =>
      deps.store.resources.update(workspace, uid, () => pullingEvent(message)),
    );
    try {
      await pullRecorded({ reference, place, known: null, record }, workspace, deps, { signal, tell }).finally(told);
    } catch (error) {
      if (signal.aborted) return; // the next server takes it up
      await failTag(record, tag.name, error, deps);
    }
  });
}

/** Takes up pulls whose server has ended. */
export async function resumePulls(records: AsyncIterable<Resource>, deps: PullDeps): Promise<void> {
  const silentSince = deps.clock.now() - SILENT_MAX_MS;
  for await (const record of records) {
    if (record.status !== "DEPLOYING" || record.updatedAt > silentSince) continue;
    for (const tag of tagsOf(record)) if (tag.awaited) beginPull(record, tag, deps);
  }
}
