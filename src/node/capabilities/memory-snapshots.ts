import type { Snapshot } from "./snapshots.ts";

/** Snapshots that also hold processes and memory. `Snapshots` lists and removes them; see `WorkloadSpec.resumed`. */
export interface MemorySnapshots {
  /**
   * The workload goes on; it stands still while its memory is written and its files are copied. Refuses (`conflict`)
   * while something is connected to the workload, and (`unprocessable`) a workload whose isolation or mounts forbid it.
   */
  take(uid: string, id: string): Promise<Snapshot>;
}
