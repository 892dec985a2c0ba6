/** Memory of a workload: what the machine does not have cannot be promised. */
import { invalidField } from "../../contract/errors.ts";
import type { Settings } from "../port.ts";

/** What a workload has already may be written back, also on a smaller machine. */
export function settledMemoryMb(
  field: string,
  asked: unknown,
  { current, defaultMb, settings }: { current: unknown; defaultMb: number; settings: Pick<Settings, "memoryMaxMb"> },
): number {
  const { memoryMaxMb } = settings;
  if (asked === undefined) return Math.min(defaultMb, memoryMaxMb);
  const memoryMb = Number(asked);
  if (memoryMb > memoryMaxMb && memoryMb !== current)
    throw invalidField(field, `must not be above ${memoryMaxMb} MB, which is what this machine has`);
  return memoryMb;
}
