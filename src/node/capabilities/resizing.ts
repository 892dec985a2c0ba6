/** Changes the limits of a running or frozen workload, without a restart. */
import type { Limits, Observed } from "../workload.ts";

export interface Resizing {
  /**
   * Holds the workload to these limits from now on. Refuses (`conflict`, with the figure) less memory than the processes
   * hold, and (`conflict`) a workload that has ended or lies on disk; the workload then has the limits that it had.
   */
  resize(uid: string, limits: Limits): Promise<Observed>;
}
