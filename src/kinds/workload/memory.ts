/** Memory of a workload: refuses more than this machine has. */
import { invalidField } from "../../contract/errors.ts";
import type { Settings } from "../port.ts";

/** The stored value may be written back even when it exceeds a smaller machine. */
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
