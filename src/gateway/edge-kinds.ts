/** Kinds whose requests edge processes forward; the owner serves the others. */
import type { WorkloadKind } from "../contract/addresses.ts";

const FORWARDED: ReadonlySet<WorkloadKind> = new Set(["agent", "application", "function", "sandbox"]);

export const isForwardedAtEdge = (kind: WorkloadKind): boolean => FORWARDED.has(kind);
