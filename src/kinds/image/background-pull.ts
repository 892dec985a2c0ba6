/** Pulls that a client asked for without a workload (`POST /images`): the record says how far they are. */
import { PlatformError } from "../../contract/errors.ts";
import { parseReference } from "../../contract/image-reference.ts";
import { MINUTE_MS } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import { type ImageTag, tagsOf, typeOf } from "./images.ts";
import { eventTeller, pullingEvent, pullRecorded } from "./pull.ts";

/** A pull that goes on writes to its record more often than this. */
const SILENT_MAX_MS = MINUTE_MS;

type PullDeps = Pick<Deps, "store" | "driver" | "settings" | "puller" | "clock" | "log">;

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
      await fail(record, tag.name, error, deps);
    }
  });
}

async function fail({ workspace, uid }: Resource, tag: string, error: unknown, deps: PullDeps): Promise<void> {
  const isTold = error instanceof PlatformError && error.status < 500;
  if (!isTold) deps.log.warn({ err: error, uid, tag }, "an image could not be pulled");
  const message = isTold ? error.message : "The pull failed; the server's log says why.";
  await deps.store.resources
    .update(workspace, uid, (current) => ({
      spec: { ...current.spec, tags: tagsOf(current).map((each) => (each.name === tag ? over(each) : each)) },
      status: "FAILED",
      event: { type: "failed", status: "FAILED", message },
    }))
    .catch((cause: unknown) => deps.log.warn({ err: cause, uid }, "the end of a pull could not be recorded"));
}

const over = ({ awaited: _, ...tag }: ImageTag): ImageTag =>
  tag.loaded === undefined ? { ...tag, failed: true } : tag;

/** Takes up pulls whose server has ended. */
export async function resumePulls(records: AsyncIterable<Resource>, deps: PullDeps): Promise<void> {
  const silentSince = deps.clock.now() - SILENT_MAX_MS;
  for await (const record of records) {
    if (record.status !== "DEPLOYING" || record.updatedAt > silentSince) continue;
    for (const tag of tagsOf(record)) if (tag.awaited) beginPull(record, tag, deps);
  }
}
