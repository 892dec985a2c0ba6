/** The node of a new resource. */
import type { Kind } from "../../contract/kind.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";

/** Null for kinds that belong to no machine, and where any node can act on any workload. */
export function nodeOfNew(kind: Kind, parents: readonly Resource[], { nodes }: Platform): string | null {
  if (!kind.placed || nodes.shared) return null;
  return parents.at(-1)?.node ?? nodes.self.id;
}
