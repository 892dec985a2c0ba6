/** Resources whose deletion is recorded and whose clean-up still runs. */
import type { Resource } from "../store/resources/resource.ts";
import type { Platform } from "./port.ts";

/** Whether the resource is deleted but its clean-up still holds the name. */
export const isLeaving = ({ deletedAt, retired }: Resource): boolean => deletedAt !== null && !retired;

/** Waits until the clean-up of a deleted resource has ended. False when that takes longer than `waitMs`. */
export async function untilGone({ workspace, uid }: Resource, waitMs: number, deps: Platform): Promise<boolean> {
  const signal = AbortSignal.timeout(waitMs);
  try {
    await deps.store.resources.waitFor(workspace, uid, (now) => now === null || now.retired, { signal });
    return true;
  } catch (error) {
    if (!signal.aborted) throw error;
    return false;
  }
}
