/** Resolves the path of a request: the workspace, the containers on the way, the collection and the resource. */
import { notFound } from "../contract/errors.ts";
import type { Kind } from "../contract/kind.ts";
import { uuidv7 } from "../lib/ids.ts";
import type { Soon } from "../lib/soon.ts";
import { ofKind, type Resource, type ResourceOf } from "../store/resources/resource.ts";
import type { ListScope } from "../store/resources/search-grams.ts";
import { type Call, type Platform, workspaceOf } from "./port.ts";
import { requireEntry } from "./sandbox/kept.ts";

export interface Collection {
  scope: ListScope;
  /** Outermost container first. */
  parents: Resource[];
}

/** Throws `not_found` unless every container on the path exists. */
export function locate(kind: Kind, call: Path, deps: Platform): Soon<Collection> {
  const workspace = workspaceOf(call).name;
  if (kind.within) return locateWithin(kind, workspace, call, deps);
  return { scope: { workspace, kind: kind.name, parent: "" }, parents: [] };
}

async function locateWithin(kind: Kind, workspace: string, call: Path, deps: Platform): Promise<Collection> {
  const ancestors: Kind[] = [];
  for (let above = kind.within; above; above = above.within) ancestors.unshift(above);
  const parents: Resource[] = [];
  for (const ancestor of ancestors) {
    const name = call.params[ancestor.param] ?? "";
    const scope = { workspace, kind: ancestor.name, parent: parents.at(-1)?.uid ?? "" };
    const parent = await lookUp(ancestor, scope, name, deps);
    if (!parent || parent.retired || isOver(ancestor, parent, deps)) throw notFound(`${ancestor.name} '${name}'`);
    requireEntry(parent, call);
    parents.push(parent);
  }
  return { scope: { workspace, kind: kind.name, parent: parents.at(-1)?.uid ?? "" }, parents };
}

/** What the path of a call names. */
type Path = Pick<Call, "params" | "workspace" | "operation" | "role">;

export async function find<K extends Kind>(
  kind: K,
  call: Path,
  deps: Platform,
): Promise<Collection & { resource: ResourceOf<K> }> {
  const place = await locate(kind, call, deps);
  const name = call.params[kind.param] ?? "";
  const resource = await lookUp(kind, place.scope, name, deps);
  if (!resource || isOver(kind, resource, deps)) throw notFound(`${kind.name} '${name}'`);
  // Reading shows only that the resource exists; changing or copying it needs the right to enter it.
  if (call.operation.mutates) requireEntry(resource, call);
  return { ...place, resource: ofKind(kind, resource) };
}

/** A built-in resource is created when it is first looked up. */
export async function lookUp(kind: Kind, scope: ListScope, name: string, deps: Platform): Promise<Resource | null> {
  const found = await deps.store.resources.get(scope, name);
  if (name !== kind.builtIn || (found && !found.retired)) return found;
  const made = await deps.store.resources.create({
    ...scope,
    uid: uuidv7(deps.clock.now()),
    name,
    metadata: {},
    spec: {},
    secrets: {},
    state: {},
    status: kind.initialStatus ?? null,
    events: [{ type: "created", message: "Made by the platform." }],
    revision: false,
    actor: "platform",
    settled: true,
  });
  return made.resource;
}

export const isOver = (kind: Kind, resource: Resource, { clock }: Platform): boolean =>
  (kind.endOf?.(resource) ?? Number.POSITIVE_INFINITY) <= clock.now();
