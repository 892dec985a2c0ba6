/** The scopes of a key, in the groups in which people choose them. */
import type { OperationFacts } from "./facts.ts";

export interface Scope {
  /** `sandboxes:list` */
  id: string;
  /** `list` */
  verb: string;
  /** What the scope allows, one line for each operation. */
  about: string;
}

export interface ScopeGroup {
  /** `sandboxes` */
  name: string;
  scopes: readonly Scope[];
}

export function scopeGroups(operations: readonly OperationFacts[]): ScopeGroup[] {
  const summaries = Map.groupBy(operations, ({ scope }) => scope ?? "");
  const scopes = [...summaries.keys()].filter((scope) => scope.includes(":")).sort();
  const groups = Map.groupBy(scopes, (scope) => scope.slice(0, scope.indexOf(":")));
  return [...groups].map(([name, ids]) => ({
    name,
    scopes: ids.map((id) => ({
      id,
      verb: id.slice(name.length + 1),
      about: (summaries.get(id) ?? []).map(({ summary }) => summary).join("\n"),
    })),
  }));
}
