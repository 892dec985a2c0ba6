/** Waits until a forked sandbox or application runs, and reports a failure to the caller. */
import { PlatformError } from "../../contract/errors.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";

const START_WAIT_MS = 60 * SECOND_MS;

export async function settled(
  { workspace, uid, name, kind }: Resource,
  until: (now: Resource | null) => boolean,
  { store }: Pick<Platform, "store">,
): Promise<void> {
  const signal = AbortSignal.timeout(START_WAIT_MS);
  const reached = await store.resources.waitFor(workspace, uid, until, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    throw new PlatformError(
      "timeout",
      `${kind} '${name}' is not ready after ${START_WAIT_MS / SECOND_MS} s. It goes on in the background.`,
    );
  });
  if (reached?.status === "FAILED")
    throw new PlatformError(
      "unprocessable",
      `${kind} '${name}' could not be started: ${reached.events.at(-1)?.message ?? "no reason was recorded"}`,
    );
}
