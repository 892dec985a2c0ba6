/** The five verbs, written once for every kind. */
import { notFound, PlatformError } from "../contract/errors.ts";
import { type ListQuery, parseListQuery } from "../contract/list-query.ts";
import { withoutEffect } from "../contract/members/without-effect.ts";
import type { Verb } from "../contract/operation.ts";
import type { Link } from "../contract/references.ts";
import { extractSecrets, keepMasked } from "../contract/secret-fields.ts";
import { BARE_LIST_MAX } from "../contract/versions/2026-04-28.ts";
import { requireCreator } from "../kinds/creator.ts";
import { etagOf, isKnown, requireMatch } from "../kinds/etag.ts";
import { isLeaving, untilGone } from "../kinds/leaving.ts";
import { requireBeside } from "../kinds/node/place-new.ts";
import { find, isOver, locate, lookUp } from "../kinds/place.ts";
import {
  type Behaviour,
  type Call,
  type Implementation,
  type Input,
  type Outlook,
  type Platform,
  type PrepareContext,
  workspaceOf,
} from "../kinds/port.ts";
import { presentAll, presentOne } from "../kinds/present.ts";
import { announceUpload, openUpload } from "../kinds/uploads.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { toIso } from "../lib/time/clock.ts";
import type { Transaction } from "../store/database/database.ts";
import type { Page } from "../store/resources/list.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Modification } from "../store/resources/resources.ts";
import type { ListScope } from "../store/resources/search-grams.ts";
import { isRehearsal, rehearsable } from "./rehearsal.ts";
import { create, linksFor, NAME_WAIT_MS, settled } from "./resource-create.ts";
import { checkImmutable, readInput } from "./resource-input.ts";
import {
  isNewRevision,
  refuseSharedVolume,
  type Standing,
  settleChoice,
  standingOf,
  trafficOf,
} from "./revision-choice.ts";

const DELETE_WAIT_MS = 10_000;

export function resourceHandlers(behaviour: Behaviour): Implementation[] {
  const { kind, explain } = behaviour;
  const handlers: Record<Verb, Implementation["handle"]> = {
    list: (call, deps) => list(behaviour, call, deps),
    get: (call, deps) => get(behaviour, call, deps),
    create: rehearsable((call, deps) => create(behaviour, call, deps)),
    update: rehearsable((call, deps) => update(behaviour, call, deps)),
    delete: rehearsable((call, deps) => remove(behaviour, call, deps)),
  };
  return kind.operations.map((operation) => {
    const { verb } = operation;
    if (verb) {
      const subject = subjectOf(behaviour, verb);
      return { operation, handle: handlers[verb], ...(subject ? { subject } : {}), ...(explain ? { explain } : {}) };
    }
    if (operation.id.endsWith("GetByExternalId"))
      return { operation, handle: (call, deps) => getByExternalId(behaviour, call, deps) };
    return { operation, handle: (call, deps) => listRevisions(behaviour, call, deps) };
  });
}

/** A missing resource is reported before errors in the body. */
function subjectOf({ kind }: Behaviour, verb: Verb): Implementation["subject"] {
  if (verb === "update") return async (call, deps) => void (await find(kind, call, deps));
  if (verb === "create" && kind.within) return async (call, deps) => void (await locate(kind, call, deps));
  return undefined;
}

async function list(behaviour: Behaviour, call: Call, deps: Platform): Promise<unknown> {
  const { kind } = behaviour;
  const { scope, parents } = await locate(kind, call, deps);
  const asked = call.query as Parameters<typeof parseListQuery>[0];
  const isSummary = asked.fields === "summary" && !kind.flat;
  if (asked.fields && kind.flat)
    call.warn(`The query parameter 'fields' has no effect: ${kind.plural} have no summary.`);
  const present = (resources: readonly Resource[]) =>
    presentAll(
      behaviour,
      resources.filter((resource) => !isOver(kind, resource, deps)),
      { parents, inList: true, viewer: scope.workspace, isSummary },
      deps,
    );
  if (kind.builtIn) await lookUp(kind, scope, kind.builtIn, deps);
  if (!kind.paged) {
    const whole = { limitDefault: BARE_LIST_MAX, limitMax: BARE_LIST_MAX };
    const query = parseListQuery(asked, whole);
    const { items } = await deps.store.resources.list(scope, query);
    const lent = await borrowed(behaviour, call, null, deps);
    return present([...items, ...lent.filter((resource) => passes(resource, query))]);
  }
  // Only calls of API versions before 2026-04-28 read a whole list.
  const limitMax = call.version < "2026-04-28" ? BARE_LIST_MAX : kind.limits.limitMax;
  const query = parseListQuery(asked, { limitDefault: kind.limits.limitDefault, limitMax });
  const page = await narrowedPage(behaviour, scope, query, call, deps);
  return {
    data: await present(page.items),
    meta: { hasMore: page.hasMore, nextCursor: page.nextCursor, total: page.total },
  };
}

/** The filters of a list on a resource that was not found by them. */
const passes = ({ status, metadata }: Resource, { statuses, labels }: ListQuery): boolean =>
  (statuses === null || statuses.includes(status ?? "")) &&
  labels.every(({ key, value }) => {
    const given = Object.hasOwn(metadata.labels ?? {}, key) ? metadata.labels?.[key] : undefined;
    return given !== undefined && (value === null || given === value);
  });

/** Applies the kind's own parameters to the results of the common ones, until the page is full. */
async function narrowedPage(
  { kind, narrow }: Behaviour,
  scope: ListScope,
  query: ListQuery,
  call: Call,
  deps: Platform,
): Promise<Page> {
  const own = Object.keys(kind.query?.list ?? {}).filter((key) => call.query[key] !== undefined);
  if (!narrow || own.length === 0) return deps.store.resources.list(scope, query);
  const narrowedBy = canonicalJson(own.map((key) => [key, call.query[key]]));
  const items: Resource[] = [];
  for (let { cursor } = query; ; ) {
    const limit = query.limit - items.length;
    const page = await deps.store.resources.list(scope, { ...query, narrowedBy, cursor, limit });
    items.push(...page.items.filter((resource) => narrow(resource, call.query)));
    if (!page.hasMore || items.length === query.limit) return { ...page, items };
    cursor = page.nextCursor;
  }
}

async function get(behaviour: Behaviour, call: Call, deps: Platform): Promise<unknown> {
  const { resource, parents } = await find(behaviour.kind, call, deps).catch(async (error: unknown) => {
    const [lent] = await borrowed(behaviour, call, call.params[behaviour.kind.param] ?? "", deps);
    if (!lent) throw error;
    return { resource: lent, parents: [] };
  });
  const viewer = workspaceOf(call).name;
  const showSecrets = resource.workspace === viewer && call.query.show_secrets === true;
  const wire = await presentOne(behaviour, resource, { parents, caller: call.caller, showSecrets, viewer }, deps);
  if (behaviour.present) call.text = JSON.stringify(wire);
  const etag = etagOf(resource, call.text);
  call.setHeader("etag", etag);
  if (isKnown(call.headers, etag)) call.setStatus(304);
  return wire;
}

const borrowed = async (behaviour: Behaviour, call: Call, name: string | null, deps: Platform): Promise<Resource[]> =>
  call.workspace ? ((await behaviour.borrowed?.(call.workspace, name, deps)) ?? []) : [];

async function getByExternalId(behaviour: Behaviour, call: Call, deps: Platform): Promise<unknown> {
  const id = call.params.externalId ?? "";
  const resource = await deps.store.resources.getByExternalId(workspaceOf(call).name, behaviour.kind.name, id);
  if (!resource) throw notFound(`${behaviour.kind.name} with external id '${id}'`);
  call.setHeader("etag", etagOf(resource));
  return presentOne(behaviour, resource, { parents: [], caller: call.caller }, deps);
}

async function update(behaviour: Behaviour, call: Call, deps: Platform): Promise<unknown> {
  const { kind } = behaviour;
  const { resource, parents } = await find(kind, call, deps);
  // A deleted resource can be made again under its name, which a 404 tells the caller.
  if (resource.retired || (isLeaving(resource) && (await untilGone(resource, NAME_WAIT_MS, deps))))
    throw deletedBefore(resource);
  if (isLeaving(resource))
    throw new PlatformError("conflict", `${kind.name} '${resource.name}' is being deleted and cannot be changed.`);
  const input = readInput(kind, call.body, resource);
  const reveal = new Set<string>();
  const context: PrepareContext = { call, deps, current: resource, parents, reveal, state: {} };
  await behaviour.prepare?.(input, context);
  const idle = withoutEffect(kind.withoutEffect, input.spec, resource.spec);
  for (const text of idle) call.warn(text);
  if (kind.revisions) refuseSharedVolume(input, resource);
  const standing = kind.revisions ? await standingOf(input, resource, deps) : null;
  if (kind.placed) await requireBeside(resource, linksFor(behaviour, { ...input, state: resource.state }, call), deps);
  // Assigned inside the transaction, which may run more than once.
  let idleChoice: string[] = [];
  const updated = await deps.store.write(async (tx) => {
    let links: Link[] = [];
    const next = await deps.store.resources.modify(tx, resource.workspace, resource.uid, (current) => {
      requireMatch(call.headers, current, `${kind.name} '${current.name}'`);
      const draft = structuredClone(input);
      checkImmutable(kind, draft, current);
      draft.metadata.name = current.name;
      links = linksFor(behaviour, { ...draft, state: current.state }, call);
      idleChoice = [];
      const found = { standing, idle, idleChoice, prepared: context.outlook };
      return replacement(behaviour, draft, current, found, call, deps);
    });
    if (next && (kind.references.length > 0 || behaviour.claims)) {
      await behaviour.beforeLinks?.(tx, links, call, deps);
      await deps.store.links.replace(tx, next, links);
    }
    if (!next) return null;
    const written = (await behaviour.onWrite?.(tx, next, deps)) ?? next;
    call.audit(tx);
    return written;
  });
  if (!updated) throw notFound(`${kind.name} '${resource.name}'`);
  for (const text of idleChoice) call.warn(text);
  // A failure is recorded in the resource; the update itself is stored.
  const { ready } = behaviour;
  const now =
    ready && !isRehearsal(call) && isAttended(updated, deps)
      ? await settled(updated, { ...ready, failed: () => null }, deps)
      : updated;
  call.setHeader("etag", etagOf(now));
  if (call.query.upload === true && !isRehearsal(call)) announceUpload(call, now, deps);
  return presentOne(behaviour, now, { parents, caller: call.caller, reveal }, deps);
}

/** Whether a server acts on the resource now; the node of the resource may be away. */
const isAttended = ({ node }: Resource, { nodes }: Platform): boolean =>
  node === null || nodes.shared || nodes.isLive(node);

/** What was found out about a replacement before it is written. */
interface Replaced {
  /** Null for kinds without revisions. */
  standing: Standing | null;
  idle: readonly string[];
  /** Gets the sentences about `spec.revision`. */
  idleChoice: string[];
  prepared: Outlook | undefined;
}

const writeAgain = (key: string): PlatformError =>
  new PlatformError(
    "bad_request",
    `${key.slice(1).replaceAll("/", ".")}: is masked, and no entry with these destinations has a stored secret. Write the secret itself.`,
  );

function replacement(
  behaviour: Behaviour,
  draft: Input,
  current: Resource,
  { standing, idle, idleChoice, prepared }: Replaced,
  call: Call,
  deps: Platform,
): Modification {
  const { kind } = behaviour;
  const stored = deps.store.resources.secretsOf(current);
  const [lost] = keepMasked(draft, kind.secrets, stored, current);
  if (lost !== undefined) throw writeAgain(lost);
  const secrets = extractSecrets(draft, kind.secrets);
  const { name: _name, ...metadata } = draft.metadata;
  // New code is a new revision, even where nothing else changes.
  const waiting = openUpload(behaviour, call, current, deps);
  const upload = waiting.upload !== undefined;
  const revision = standing !== null && (upload || isNewRevision(draft, current, secrets, stored));
  if (standing) idleChoice.push(...settleChoice(draft, current, revision, standing));
  const intent = upload || canonicalJson([draft.spec, secrets]) !== canonicalJson([current.spec, stored]);
  const outlook =
    (upload ? behaviour.uploads?.awaiting : undefined) ?? prepared ?? behaviour.outlook?.(draft.spec, current);
  const status = intent ? outlook?.status : undefined;
  const changed = `Changed by ${call.caller.displayName}.`;
  return {
    metadata: { ...current.metadata, ...metadata },
    spec: draft.spec,
    secrets,
    ...(upload ? { state: { ...current.state, ...waiting } } : {}),
    actor: call.caller.displayName,
    intent,
    ...(status === undefined ? {} : { status }),
    ...(intent && behaviour.reconciled !== true ? { observedGeneration: current.generation + 1 } : {}),
    revision,
    // Labels and display names are for people; who reads events wants to know what happened to the resource.
    ...(intent
      ? {
          event: {
            type: "updated",
            message: [changed, ...idle, ...idleChoice, ...(prepared?.event ? [prepared.event.message] : [])].join(" "),
          },
        }
      : {}),
  };
}

async function remove(behaviour: Behaviour, call: Call, deps: Platform): Promise<unknown> {
  const { kind } = behaviour;
  const { resource, parents } = await find(kind, call, deps);
  if (resource.retired) throw deletedBefore(resource);
  if (resource.name === kind.builtIn)
    throw new PlatformError("conflict", `${kind.name} '${resource.name}' belongs to the workspace and stays with it.`);
  if (behaviour.deletedByCreator) requireCreator(resource, call);
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
    await deps.store.links.requireUnused(tx, resource);
    if (!behaviour.reconciled) await deps.store.resources.remove(tx, resource.workspace, resource.uid);
    if (marked) call.audit(tx);
    return marked;
  });
  if (!leaving) throw deletedBefore(resource);
  // The mark is durable; clean-up that takes longer goes on without the caller.
  if (behaviour.awaitDelete && !isRehearsal(call) && isAttended(leaving, deps))
    await untilGone(leaving, DELETE_WAIT_MS, deps);
  return behaviour.deleted
    ? behaviour.deleted(leaving)
    : presentOne(behaviour, leaving, { parents, caller: call.caller }, deps);
}

/** 404 as for what never was; but a reader still sees the record for a while, so the message tells both apart. */
const deletedBefore = ({ kind, name, deletedAt }: Resource): PlatformError =>
  deletedAt === null
    ? notFound(`${kind} '${name}'`)
    : new PlatformError(
        "not_found",
        `${kind} '${name}' was deleted at ${toIso(deletedAt)}. Only its record can still be read, for a few minutes.`,
      );

/** The deletion mark refuses new children, so an empty resource stays empty. */
async function refuseNonEmpty(tx: Transaction, { kind, name, uid }: Resource, deps: Platform): Promise<void> {
  const [child] = await deps.store.resources.childrenIn(tx, uid, 1);
  if (!child) return;
  throw new PlatformError(
    "conflict",
    `${kind} '${name}' is not empty: it holds ${child.kind} '${child.name}'. Delete what is in it first.`,
  );
}

async function listRevisions({ kind, presentRevision }: Behaviour, call: Call, deps: Platform): Promise<unknown> {
  const { resource } = await find(kind, call, deps);
  const revisions = await deps.store.resources.revisionsOf(resource.workspace, resource.uid);
  const sharesOf = trafficOf(resource, revisions[0]?.id);
  return revisions.map((revision) => ({
    id: revision.id,
    createdAt: toIso(revision.createdAt),
    createdBy: revision.createdBy,
    spec: revision.spec,
    ...sharesOf(revision.id),
    ...presentRevision?.(revision),
  }));
}
