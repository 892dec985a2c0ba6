import type { Observed } from "../workload.ts";

/** Workloads whose processes and memory lie on disk. Such a workload is observed as frozen; a thaw brings it back. */
export interface Hibernation {
  /**
   * Writes a workload to disk and ends its processes. Refuses (`conflict`) while something inside is connected to the
   * machine, and (`unprocessable`) a workload whose isolation cannot do it; the workload then is as it was.
   */
  hibernate(uid: string): Promise<Observed>;
}
