/** The limits of a workload, from the memory and the processors in its record. */
import { invalidField } from "../../contract/errors.ts";
import type { NodeInfo } from "../../node/nodes.ts";
import type { Limits } from "../../node/workload.ts";

/** Megabytes of memory per CPU core, as the API contract promises. */
const MEMORY_PER_CPU_MB = 2048;
/** Share of a core that every workload has, however little memory it has. */
export const CPUS_MIN = 0.25;
/** Above every machine; what a machine has is checked by `requireCpus`. */
export const CPUS_MAX = 1024;

export const limitsFor = (memoryMb: number, cpus = Math.max(memoryMb / MEMORY_PER_CPU_MB, CPUS_MIN)): Limits => ({
  memoryMb,
  cpus,
});

/** Refuses more processors than the largest of the machines has. */
export function requireCpus(field: string, cpus: unknown, machines: readonly Pick<NodeInfo, "cpus">[]): void {
  const most = Math.max(...machines.map((machine) => machine.cpus));
  if (typeof cpus === "number" && cpus > most)
    throw invalidField(field, `must not be above ${most}, which is what the machine has`);
}
