/** The five verbs, written once for every kind. */
import { notFound, PlatformError } from "../contract/errors.ts";
import type { Kind } from "../contract/kind.ts";
import { parseListQuery } from "../contract/list-query.ts";
import type { Role, Verb } from "../contract/operation.ts";
import { extractSecrets, keepMasked, MASK } from "../contract/secret-fields.ts";
import { BARE_LIST_MAX } from "../contract/versions/2026-04-28.ts";
import { etagOf, requireMatch } from "../kinds/etag.ts";
import { type Behaviour, type Call, type Deps, type Implementation, type Input, workspaceOf } from "../kinds/port.ts";
import { toWire } from "../kinds/present.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { toIso } from "../lib/clock.ts";
import { uuidv7 } from "../lib/ids.ts";
import type { Transaction } from "../store/database.ts";
import type { Resource } from "../store/resource.ts";
import type { Created, Draft, Modification } from "../store/resources.ts";
import type { ListScope } from "../store/search-grams.ts";

export function resourceHandlers(behaviour: Behaviour): Implementation[] {
  const { kind } = behaviour;
  const handlers: Record<Verb, Implementation["handle"]> = {
    list: (call, deps) => list(behaviour, call, deps),
    get: (call, deps) => get(behaviour, call, deps),
    create: (call, deps) => create(behaviour, call, deps),
    update: (call, deps) => update(behaviour, call, deps),
    delete: (call, deps) => remove(behaviour, call, deps),
  };
  return kind.operations.map((operation) => {
    if (operation.verb) return { operation, handle: handlers[operation.verb] };
    if (operation.id.endsWith("GetByExternalId"))
      return { operation, handle: (call, deps) => getByExternalId(behaviour, call, deps) };
    return { operation, handle: (call, deps) => listRevisions(behaviour, call, deps) };
  });
}

interface Place {
  scope: ListScope;
  parents: Resource[];
}

/** Follows the path from the workspace down to the collection; every container on the way must exist. */
async function locate(kind: Kind, call: Call, deps: Deps): Promise<Place> {
  const workspace = workspaceOf(call).name;
  const ancestors: Kind[] = [];
  for (let above = kind.within; above; above = above.within) ancestors.unshift(above);
  const parents: Resource[] = [];
  for (const ancestor of ancestors) {
    const name = call.params[ancestor.param] ?? "";
    const parent = await lookUp(
      ancestor,
      { workspace, kind: ancestor.name, parent: parents.at(-1)?.uid ?? "" },
      name,
      deps,
    );
    if (!parent || parent.retired) throw notFound(`${ancestor.name} '${name}'`);
    parents.push(parent);
  }
  return { scope: { workspace, kind: kind.name, parent: parents.at(-1)?.uid ?? "" }, parents };
}

async function find(kind: Kind, call: Call, deps: Deps): Promise<Place & { resource: Resource }> {
  const place = await locate(kind, call, deps);
  const name = call.params[kind.param] ?? "";
  const resource = await lookUp(kind, place.scope, name, deps);
  if (!resource) throw notFound(`${kind.name} '${name}'`);
  return { ...place, resource };
}

/** A built-in resource exists as soon as somebody looks for it. */
async function lookUp(kind: Kind, scope: ListScope, name: string, deps: Deps): Promise<Resource | null> {
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

async function list(behaviour: Behaviour, call: Call, deps: Deps): Promise<unknown> {
  const { kind } = behaviour;
  const { scope, parents } = await locate(kind, call, deps);
  const present = (resource: Resource) =>
    toWire(behaviour, resource, { parents, inList: true, viewer: scope.workspace }, deps);
  if (kind.builtIn) await lookUp(kind, scope, kind.builtIn, deps);
  const asked = call.query as Parameters<typeof parseListQuery>[0];
  if (!kind.paged) {
    const page = await deps.store.resources.list(
      scope,
      parseListQuery({ limit: BARE_LIST_MAX }, { limitDefault: BARE_LIST_MAX, limitMax: BARE_LIST_MAX }),
    );
    return [...page.items, ...(await borrowed(behaviour, call, null, deps))].map(present);
  }
  // Only the lifted call of an older client asks for a whole list.
  const limitMax = call.version < "2026-04-28" ? BARE_LIST_MAX : kind.limits.limitMax;
  const query = parseListQuery(asked, { limitDefault: kind.limits.limitDefault, limitMax });
  const page = await deps.store.resources.list(scope, query);
  return {
    data: page.items.map(present),
    meta: { hasMore: page.hasMore, nextCursor: page.nextCursor, total: page.total },
  };
}

async function get(behaviour: Behaviour, call: Call, deps: Deps): Promise<unknown> {
  const place = await find(behaviour.kind, call, deps).catch(async (error: unknown) => {
    const [resource] = await borrowed(behaviour, call, call.params[behaviour.kind.param] ?? "", deps);
    if (!resource) throw error;
    return { resource, parents: [] };
  });
  const { resource, parents } = place;
  const own = resource.workspace === workspaceOf(call).name;
  const showSecrets = own && call.query.show_secrets === true;
  if (showSecrets) requireAdmin(call.role, "show_secrets");
  call.setHeader("etag", etagOf(resource));
  return toWire(behaviour, resource, { parents, inList: false, showSecrets, viewer: workspaceOf(call).name }, deps);
}

const borrowed = async (behaviour: Behaviour, call: Call, name: string | null, deps: Deps): Promise<Resource[]> =>
  call.workspace ? ((await behaviour.borrowed?.(call.workspace, name, deps)) ?? []) : [];

async function getByExternalId(behaviour: Behaviour, call: Call, deps: Deps): Promise<unknown> {
  const id = call.params.externalId ?? "";
  const resource = await deps.store.resources.getByExternalId(workspaceOf(call).name, behaviour.kind.name, id);
  if (!resource) throw notFound(`${behaviour.kind.name} with external id '${id}'`);
  call.setHeader("etag", etagOf(resource));
  return toWire(behaviour, resource, { parents: [], inList: false }, deps);
}

async function create(behaviour: Behaviour, call: Call, deps: Deps): Promise<unknown> {
  const { kind } = behaviour;
  const { scope, parents } = await locate(kind, call, deps);
  const uid = call.uid();
  const input = readInput(kind, call.body, null);
  input.metadata.name ??= `${kind.name}-${uid.slice(-8)}`;
  await behaviour.prepare?.(input, { call, deps, current: null, parents });
  keepMasked(input, kind.secrets, {});
  const { name, ...metadata } = input.metadata;
  const secrets = extractSecrets(input, kind.secrets);
  const draft = {
    ...scope,
    uid,
    name: name ?? "",
    metadata,
    spec: input.spec,
    secrets,
    state: {},
    status: kind.initialStatus ?? null,
    events: [{ type: "created", message: `Created by ${call.caller.displayName}.` }],
    revision: kind.revisions ?? false,
    actor: call.caller.displayName,
    settled: !behaviour.reconciled,
  };
  let created = await put(behaviour, draft, deps);
  if (created.outcome === "exists" && behaviour.replaceable?.(created.resource)) {
    await deps.store.resources.update(scope.workspace, created.resource.uid, () => ({ retire: true }));
    created = await put(behaviour, draft, deps);
  }
  // A retried idempotent request meets its own earlier effect.
  if (created.outcome === "exists" && created.resource.uid !== uid) throw alreadyExists(kind, created.resource);
  const resource = behaviour.ready ? await settled(created.resource, behaviour.ready, deps) : created.resource;
  call.setHeader("etag", etagOf(resource));
  return toWire(behaviour, resource, { parents, inList: false }, deps);
}

const put = (behaviour: Behaviour, draft: Draft, deps: Deps): Promise<Created> =>
  deps.store.write(async (tx) => {
    const created = await deps.store.resources.insert(tx, draft);
    if (created.outcome === "exists" || !behaviour.onCreate) return created;
    const change = await behaviour.onCreate(tx, created.resource, deps);
    const resource = await deps.store.resources.modify(tx, draft.workspace, draft.uid, () => change);
    return { outcome: "created", resource: resource ?? created.resource };
  });

function alreadyExists(kind: Kind, existing: Resource): PlatformError {
  const leaving = existing.deletedAt ? " and is being deleted; try again in a moment" : "";
  return new PlatformError(
    "conflict",
    `${kind.name} '${existing.name}' exists already${leaving}. Choose another name, or update it.`,
  );
}

/** The work goes on when the wait ends first; the caller is told so and can look again. */
async function settled(resource: Resource, ready: NonNullable<Behaviour["ready"]>, deps: Deps): Promise<Resource> {
  const signal = AbortSignal.timeout(ready.waitMs);
  const reached = await deps.store.resources
    .waitFor(resource.workspace, resource.uid, (now) => now === null || ready.until(now), { signal })
    .catch((error: unknown) => {
      if (!signal.aborted) throw error;
      throw new PlatformError(
        "timeout",
        `${resource.kind} '${resource.name}' is not ready after ${ready.waitMs / 1000} s. It goes on in the background; read it again later.`,
      );
    });
  if (!reached) throw notFound(`${resource.kind} '${resource.name}'`);
  return reached;
}

async function update(behaviour: Behaviour, call: Call, deps: Deps): Promise<unknown> {
  const { kind } = behaviour;
  const { resource, parents } = await find(kind, call, deps);
  if (resource.deletedAt !== null)
    throw new PlatformError("conflict", `${kind.name} '${resource.name}' is being deleted and cannot be changed.`);
  const input = readInput(kind, call.body, resource);
  await behaviour.prepare?.(input, { call, deps, current: resource, parents });
  const updated = await deps.store.resources.update(resource.workspace, resource.uid, (current) => {
    requireMatch(call.headers, current, `${kind.name} '${current.name}'`);
    const draft = structuredClone(input);
    checkImmutable(kind, draft, current);
    return replacement(behaviour, draft, current, call, deps);
  });
  if (!updated) throw notFound(`${kind.name} '${resource.name}'`);
  call.setHeader("etag", etagOf(updated));
  return toWire(behaviour, updated, { parents, inList: false }, deps);
}

function replacement(behaviour: Behaviour, draft: Input, current: Resource, call: Call, deps: Deps): Modification {
  const { kind } = behaviour;
  const stored = deps.store.resources.secretsOf(current);
  keepMasked(draft, kind.secrets, stored);
  const secrets = extractSecrets(draft, kind.secrets);
  const { name: _name, ...metadata } = draft.metadata;
  const intent = canonicalJson([draft.spec, secrets]) !== canonicalJson([current.spec, stored]);
  return {
    metadata: { ...current.metadata, ...metadata },
    spec: draft.spec,
    secrets,
    actor: call.caller.displayName,
    intent,
    ...(intent && !behaviour.reconciled ? { observedGeneration: current.generation + 1 } : {}),
    revision: intent && (kind.revisions ?? false),
    event: { type: "updated", message: `${intent ? "Changed" : "Metadata changed"} by ${call.caller.displayName}.` },
  };
}

async function remove(behaviour: Behaviour, call: Call, deps: Deps): Promise<unknown> {
  const { kind } = behaviour;
  const { resource, parents } = await find(kind, call, deps);
  if (resource.retired) throw notFound(`${kind.name} '${resource.name}'`);
  if (resource.name === kind.builtIn)
    throw new PlatformError("conflict", `${kind.name} '${resource.name}' belongs to the workspace and stays with it.`);
  await behaviour.guardDelete?.(resource, deps);
  const leaving = await deps.store.write(async (tx) => {
    const marked = await deps.store.resources.modify(tx, resource.workspace, resource.uid, (current) => {
      requireMatch(call.headers, current, `${kind.name} '${current.name}'`);
      if (current.deletedAt !== null) return null;
      return {
        deleted: true,
        intent: true,
        actor: call.caller.displayName,
        ...(kind.initialStatus ? { status: "DELETING" } : {}),
        event: { type: "deleted", message: `Deleted by ${call.caller.displayName}.` },
      };
    });
    if (behaviour.childrenFirst) await refuseNonEmpty(tx, resource, deps);
    if (!behaviour.reconciled) await deps.store.resources.remove(tx, resource.workspace, resource.uid);
    return marked;
  });
  if (!leaving) throw notFound(`${kind.name} '${resource.name}'`);
  return behaviour.deleted ? behaviour.deleted(leaving) : toWire(behaviour, leaving, { parents, inList: false }, deps);
}

/** The mark keeps new children out, so what is not there now will not be there later. */
async function refuseNonEmpty(tx: Transaction, { kind, name, uid }: Resource, deps: Deps): Promise<void> {
  const [child] = await deps.store.resources.childrenIn(tx, uid, 1);
  if (!child) return;
  throw new PlatformError(
    "conflict",
    `${kind} '${name}' is not empty: it holds ${child.kind} '${child.name}'. Delete what is in it first.`,
  );
}

async function listRevisions({ kind }: Behaviour, call: Call, deps: Deps): Promise<unknown> {
  const { resource } = await find(kind, call, deps);
  const revisions = await deps.store.resources.revisionsOf(resource.workspace, resource.uid);
  const wanted = resource.spec.revision as { active?: string; canary?: string } | undefined;
  const active = wanted?.active ?? revisions[0]?.id;
  return revisions.map((revision) => ({
    id: revision.id,
    active: revision.id === active,
    canary: revision.id === wanted?.canary,
    createdAt: toIso(revision.createdAt),
    createdBy: revision.createdBy,
    ...(revision.id === active && resource.status ? { status: resource.status } : {}),
  }));
}

/** Keeps of the body what a client may decide: the kind's metadata and the spec without its read-only members. */
function readInput(kind: Kind, body: unknown, current: Resource | null): Input {
  const { metadata, spec } = body as Input;
  const allowed = ["displayName", "labels", "externalId", ...Object.keys(kind.metadata ?? {})];
  if (current && metadata.name !== undefined && metadata.name !== current.name) {
    throw new PlatformError("immutable_field", `metadata.name cannot change: this is '${current.name}'.`);
  }
  const kept: Input["metadata"] = Object.fromEntries(Object.entries(metadata).filter(([key]) => allowed.includes(key)));
  const input = {
    metadata: { ...kept, ...(metadata.name === undefined ? {} : { name: metadata.name }) },
    spec: { ...spec },
  };
  for (const key of kind.readOnlySpec) {
    delete input.spec[key];
    if (current?.spec[key] !== undefined) input.spec[key] = current.spec[key];
  }
  return input;
}

/** An immutable member that a replacement leaves out stays as it is; one that differs is refused. */
function checkImmutable(kind: Kind, draft: Input, current: Resource): void {
  for (const path of kind.immutable) {
    const keys = path.split(".");
    const last = keys.pop() ?? "";
    const [from, to] = [holderOf(current, keys), holderOf(draft, keys)];
    if (!from || !to || from[last] === undefined) continue;
    if (to[last] === undefined || to[last] === MASK) to[last] = from[last];
    else if (canonicalJson(to[last]) !== canonicalJson(from[last])) {
      throw new PlatformError(
        "immutable_field",
        `${path} cannot change after creation. Create another ${kind.name} instead.`,
      );
    }
  }
}

const holderOf = (root: object, keys: string[]): Record<string, unknown> | undefined =>
  keys.reduce<Record<string, unknown> | undefined>(
    (node, key) => node?.[key] as Record<string, unknown> | undefined,
    root as Record<string, unknown>,
  );

function requireAdmin(role: Role | null, what: string): void {
  if (role !== "admin") throw new PlatformError("forbidden", `${what} needs the admin role in this workspace.`);
}
