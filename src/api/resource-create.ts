/** Creating a resource: everything that must hold together is one transaction. */
import { isDelayed } from "../contract/delayed.ts";
import { notFound, PlatformError } from "../contract/errors.ts";
import type { Kind } from "../contract/kind.ts";
import { withoutEffect } from "../contract/members/without-effect.ts";
import { type Link, linksOf } from "../contract/references.ts";
import { extractSecrets, keepMasked } from "../contract/secret-fields.ts";
import { etagOf } from "../kinds/etag.ts";
import { isLeaving, untilGone } from "../kinds/leaving.ts";
import { nodeOfNew } from "../kinds/node/place-new.ts";
import { isOver, locate } from "../kinds/place.ts";
import type { Behaviour, Call, Input, Platform, PrepareContext } from "../kinds/port.ts";
import { presentOne } from "../kinds/present.ts";
import { announceUpload, openUpload } from "../kinds/uploads.ts";
import type { Transaction } from "../store/database/database.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Created, Draft } from "../store/resources/resources.ts";
import type { ListScope } from "../store/resources/search-grams.ts";
import { isRehearsal } from "./rehearsal.ts";
import { readInput } from "./resource-input.ts";
import { dropChoice } from "./revision-choice.ts";

/**
 * Attempts to generate a free name. Another request may take a name at the same moment; this many in a row are a bug.
 */
const NAME_ATTEMPTS_MAX = 50;

/** How long a request waits for the deletion of the resource that has its name. */
export const NAME_WAIT_MS = 30_000;

export async function create(behaviour: Behaviour, call: Call, deps: Platform): Promise<unknown> {
  const { kind } = behaviour;
  const place = locate(kind, call, deps);
  const { scope, parents } = place instanceof Promise ? await place : place;
  const uid = call.uid();
  const input = readInput(kind, call.body, null);
  const reveal = new Set<string>();
  if (!behaviour.generateName) input.metadata.name ??= `${kind.name}-${uid.slice(-8)}`;
  const state: Record<string, unknown> = {};
  const context: PrepareContext = { call, deps, current: null, parents, reveal, state };
  const preparing = behaviour.prepare?.(input, context);
  if (preparing) await preparing;
  const idle = kind.revisions ? dropChoice(input) : [];
  keepMasked(input, kind.secrets, {}, {});
  const slot = behaviour.slot?.(input);
  const links = linksFor(behaviour, input, call);
  Object.assign(state, openUpload(behaviour, call, null, deps));
  const node = kind.placed ? await nodeOfNew({ kind, scope, parents, links }, deps) : null;
  if (kind.placed?.shownAs !== undefined && node !== null) input.spec[kind.placed.shownAs] = node;
  const draft = { ...draftOf(behaviour, scope, { uid, state, idle }, input, context), node };
  if (slot !== undefined) draft.slot = slot;
  const created = await insert(behaviour, draft, links, call, deps);
  const ready = isRehearsal(call) ? undefined : behaviour.ready;
  const resource = ready ? await settled(created, ready, deps) : created;
  if (ready && isDelayed(resource)) throw delayed(resource);
  call.setHeader("etag", etagOf(resource));
  if (state.upload && !isRehearsal(call)) announceUpload(call, resource, deps);
  return presentOne(
    behaviour,
    resource,
    { parents, caller: call.caller, reveal: created.uid === uid ? reveal : new Set() },
    deps,
  );
}

/** The state of a resource may also refer to other resources. */
export function linksFor(behaviour: Behaviour, input: Input & { state?: unknown }, call: Call): Link[] {
  const links = linksOf(input, behaviour.kind.references);
  return behaviour.claims ? [...links, ...behaviour.claims(input, call)] : links;
}

function draftOf(
  { kind, uploads, outlook: outlookOf, reconciled }: Behaviour,
  { workspace, kind: kindName, parent }: ListScope,
  { uid, state, idle: idleChoice }: Pick<Draft, "uid" | "state"> & { idle: readonly string[] },
  input: Input,
  { call, outlook: prepared }: PrepareContext,
): Draft {
  const secrets = extractSecrets(input, kind.secrets);
  const { name, ...metadata } = input.metadata;
  const outlook = (state.upload ? uploads?.awaiting : undefined) ?? prepared ?? outlookOf?.(input.spec, null);
  const idle = [...idleChoice, ...withoutEffect(kind.withoutEffect, input.spec, null)];
  for (const text of idle) call.warn(text);
  return {
    workspace,
    kind: kindName,
    parent,
    uid,
    state,
    name: name ?? "",
    slot: kind.namesShared ? uid : undefined,
    countMax: kind.countMax,
    metadata,
    spec: input.spec,
    secrets,
    status: outlook?.status ?? kind.initialStatus ?? null,
    events: [
      { type: "created", message: `Created by ${call.caller.displayName}.` },
      ...idle.map((message) => ({ type: "without-effect", message })),
      ...(outlook?.event ? [outlook.event] : []),
    ],
    revision: kind.revisions ?? false,
    actor: call.caller.displayName,
    settled: reconciled !== true,
  };
}

async function insert(
  behaviour: Behaviour,
  draft: Draft,
  links: readonly Link[],
  call: Call,
  deps: Platform,
): Promise<Resource> {
  for (let attempt = 1; ; attempt += 1) {
    const { outcome, resource } = await deps.store.write(async (tx) => {
      const named =
        draft.name === "" ? { ...draft, name: (await behaviour.generateName?.(tx, draft, deps)) ?? "" } : draft;
      const first = await deps.store.resources.insert(tx, named);
      const isFree = first.outcome === "created" || first.resource.uid === draft.uid;
      const created = isFree ? first : await makeRoom(behaviour, named, first, call, deps, tx);
      if (created.outcome === "exists") return created;
      if (links.length > 0) {
        await behaviour.beforeLinks?.(tx, links, call, deps);
        await deps.store.links.replace(tx, created.resource, links);
      }
      const isMore = behaviour.onWrite !== undefined || behaviour.onCreate !== undefined;
      const resource = isMore ? await finished(behaviour, created.resource, deps, tx) : created.resource;
      // A create that waits for `ready` may still fail and is audited afterwards.
      if (!behaviour.ready) call.audit(tx);
      return { outcome: "created", resource };
    });
    // A retried idempotent request finds the resource that its first attempt created.
    if (outcome === "created" || resource.uid === draft.uid) return resource;
    if (draft.name === "" && attempt < NAME_ATTEMPTS_MAX) continue;
    const isFreed =
      attempt < NAME_ATTEMPTS_MAX && isLeaving(resource) && (await untilGone(resource, NAME_WAIT_MS, deps));
    if (isFreed) continue;
    if (behaviour.onExists?.(resource, call, deps.clock.now()) === "reuse") return resource;
    throw alreadyExists(behaviour.kind, resource);
  }
}

async function finished(behaviour: Behaviour, made: Resource, deps: Platform, tx: Transaction): Promise<Resource> {
  const written = (await behaviour.onWrite?.(tx, made, deps)) ?? made;
  const change = await behaviour.onCreate?.(tx, written, deps);
  if (!change) return written;
  return (await deps.store.resources.modify(tx, made.workspace, made.uid, () => change)) ?? written;
}

/** Frees the name of an expired record, or of one that the kind allows to replace. */
async function makeRoom(
  behaviour: Behaviour,
  draft: Draft,
  found: Created,
  call: Call,
  deps: Platform,
  tx: Transaction,
): Promise<Created> {
  const { kind } = behaviour;
  const { resources } = deps.store;
  const existing = found.resource;
  const over = isOver(kind, existing, deps);
  if (!over && behaviour.onExists?.(existing, call, deps.clock.now()) !== "replace") return found;
  if (over || !kind.initialStatus) await resources.remove(tx, draft.workspace, existing.uid);
  else
    await resources.modify(tx, draft.workspace, existing.uid, () => ({
      retire: true,
      status: "TERMINATED",
      event: { type: "replaced", message: `Replaced by ${call.caller.displayName} with a new one of this name.` },
    }));
  return resources.insert(tx, draft);
}

function alreadyExists(kind: Kind, existing: Resource): PlatformError {
  const advice = existing.deletedAt
    ? "is being deleted. Try again in a moment, or choose another name"
    : "exists already. Choose another name, or update it";
  return new PlatformError("already_exists", `${kind.name} '${existing.name}' ${advice}.`, {
    detail: { status: existing.status },
  });
}

/** When the wait ends first, the work continues; the caller is told and can read the resource again. */
export async function settled(
  resource: Resource,
  ready: NonNullable<Behaviour["ready"]>,
  deps: Platform,
): Promise<Resource> {
  const { waitMs, longer } = ready;
  const isOver = (now: Resource | null): boolean => now === null || ready.until(now) || isDelayed(now);
  const wait = async (
    forMs: number,
    until: (now: Resource | null) => boolean,
  ): Promise<Resource | null | undefined> => {
    const signal = AbortSignal.timeout(forMs);
    return deps.store.resources.waitFor(resource.workspace, resource.uid, until, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      return undefined;
    });
  };
  let reached = await wait(waitMs, isOver);
  // The caller waits on while work goes on that takes long by its nature.
  for (let waited = waitMs; reached === undefined && longer && waited < longer.waitMs; waited += waitMs) {
    const now = await deps.store.resources.getByUid(resource.workspace, resource.uid);
    if (now && !longer.while(now)) break;
    reached = await wait(waitMs, isOver);
  }
  if (reached === undefined)
    throw new PlatformError(
      "timeout",
      `${resource.kind} '${resource.name}' is not ready yet. It goes on in the background; read it again later.`,
    );
  if (!reached) throw notFound(`${resource.kind} '${resource.name}'`);
  const failure = ready.failed?.(reached);
  if (failure) throw failure;
  return reached;
}

const delayed = ({ kind, name, events }: Resource): PlatformError =>
  new PlatformError(
    "unavailable",
    `${kind} '${name}' is not ready. ${events.at(-1)?.message ?? ""}. The server goes on trying; read it again later, or delete it.`,
  );
