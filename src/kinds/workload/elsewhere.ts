/** What an agent, function, application or job takes along to another node: its code, which is built there again. */
import type { Resource } from "../../store/resources/resource.ts";
import { runtimeOf, stateOf } from "./deploy-state.ts";

/** Null: it cannot leave its node, because its files are there. */
export function deployElsewhere(resource: Resource): Record<string, unknown> | null {
  if (runtimeOf(resource.kind, resource.spec).snapshot) return null;
  const { revisions = {} } = stateOf(resource);
  return {
    ...resource.state,
    copies: [],
    instances: [],
    activeRevision: undefined,
    canaryRevision: undefined,
    crashes: {},
    revisions: Object.fromEntries(
      Object.entries(revisions).map(([id, { bundle: _bundle, building: _building, ...code }]) => [id, code]),
    ),
  };
}
