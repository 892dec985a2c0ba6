/** Holds a workload still in memory, so that a sandbox without requests costs no processor time. */
import type { Observed } from "../workload.ts";

export interface Freezing {
  freeze(uid: string): Promise<Observed>;
  thaw(uid: string): Promise<Observed>;
}
