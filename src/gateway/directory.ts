/**
 * Finds workloads and their instances in the store. Results are cached until the store reports a change, so a request
 * to a running workload costs no query.
 */

import type { Duplex } from "node:stream";
import type { Makers } from "../auth/rights/makers.ts";
import type { WorkloadKind } from "../contract/addresses.ts";
import { GatewayError } from "../contract/gateway-errors.ts";
import { hostLabelOf } from "../contract/held-words.ts";
import { type Instance, type InstancesState, WORKLOAD_PORT } from "../contract/instance.ts";
import { keptOf } from "../contract/kept-access.ts";
import type { Place } from "../contract/placement.ts";
import { CLAIMS } from "../contract/references.ts";
import { choiceOf, liveCanary } from "../contract/revision-share.ts";
import { serversOf, toolRulesOf } from "../contract/tools/tool-rules.ts";
import type { Activity } from "../lib/activity.ts";
import type { Running } from "../lib/lifecycle.ts";
import { type Clock, MINUTE_MS } from "../lib/time/clock.ts";
import { dial } from "../node/dial/dial.ts";
import type { Endpoint } from "../node/dial/endpoint.ts";
import { namesPolicies, storedPlacementRefusal } from "../store/resources/placement-policies.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import { dialDaemon } from "./daemon-dial.ts";
import type { Door, GatewayDeps, InstanceLease, Workload } from "./deps.ts";
import { createDomainTable, type DomainNames } from "./domain-table.ts";
import { createHeldLookup, type HeldLookup } from "./held-lookup.ts";
import { httpTriggersOf } from "./http-trigger.ts";
import type { RevisionPlan } from "./pick-revision.ts";
import { createPreviewLookup } from "./preview-lookup.ts";
import { createTriggerLookup } from "./trigger-lookup.ts";

/** Cached workloads, to bound memory. A full cache is emptied. */
const ENTRIES_MAX = 20_000;
/** Longer than a request is held, so callers give up before. */
const WAKE_MAX_MS = 5 * MINUTE_MS;
/** After this many reads that raced with changes, the result is used once and not cached. */
const LOOKS_MAX = 3;
/** The reconcile loop checks a copy within a second. A copy it still reports as running after this does not listen. */
const COPY_LOOK_MS = 8000;

export interface DirectoryDeps extends Pick<Makers, "makerOf"> {
  store: Store;
  clock: Clock;
  activity: Activity;
  /** Whether the platform answers for the resource itself, so that no instance has to run. */
  isServed(resource: Resource): boolean;
  /** Location of this server, for the policies of workloads. */
  place: Place;
  /** Id of this node; null where every server can serve every workload. */
  self: string | null;
}

export interface Directory
  extends Running,
    Pick<GatewayDeps, "resolve" | "rejoin" | "wake" | "dial" | "isCustomDomain"> {
  ready(workload: Workload, revision: string | null): InstanceLease | null;
  /** Resolves when the custom domains are known. */
  opened(): Promise<void>;
  /** Names of the custom domains, which have hosts at and below them. */
  customDomains: DomainNames;
  /** Until when a token opens a preview, unless something changes; 0 = it does not. */
  previewTokenUntilMs(preview: { workspace: string; uid: string }, token: string): Promise<number>;
  /** The running instances of a workload that was resolved lately. */
  runningOf(uid: string): Instance<Endpoint>[];
  /** A lease on this running instance; null when it no longer runs, or the workload is to be resolved again. */
  claim(uid: string, copy: string): InstanceLease | null;
  /** The instance that takes the place of one that nothing listens in; null when that one still runs. */
  replacementOf(workload: Workload, copy: string, revision: string | null): Promise<Instance<Endpoint> | null>;
}

interface Entry {
  workload: Workload;
  instances: Instance<Endpoint>[];
}

/** A lease with the endpoint to dial. */
interface OpenLease extends InstanceLease {
  endpoint: Endpoint;
  workload: Workload;
  /** Any copy of this revision may replace the leased one; null where only this copy will do. */
  revision: string | null;
}

export function createDirectory(deps: DirectoryDeps): Directory {
  const { store, clock, makerOf, activity, place } = deps;
  const entries = new Map<string, Entry>();
  const uids = new Map<string, string>();
  const waking = new Map<string, Promise<void>>();
  const looking = new Map<string, Promise<boolean>>();
  const stopped = new AbortController();
  const previews = createPreviewLookup({ store, clock, makerOf });
  const domains = createDomainTable({ store });
  const triggers = createTriggerLookup({ store });
  const labels = createHeldLookup("workload", { store });
  const internal = createHeldLookup("internal", { store });
  // Counts changes: a result that was read before a change must not be cached after it.
  let era = 0;
  let policyEra = 0;
  const unsubscribe = store.database.onChange(({ topic, key }) => {
    era += 1;
    if (topic === "resync" || key.startsWith("policy/")) {
      // A cached workload includes its policies, so a changed policy empties the cache.
      policyEra += 1;
      entries.clear();
    } else if (topic === "resource") entries.delete(key.slice(key.indexOf("/") + 1));
  });

  async function entryOf(resource: Resource): Promise<Entry> {
    const entry = plainEntryOf(resource, deps);
    const refusal = namesPolicies(resource) ? await storedPlacementRefusal(store, resource, place) : null;
    return refusal === null ? entry : { ...entry, workload: { ...entry.workload, refusal } };
  }

  function keep(resource: Resource, entry: Entry): Entry {
    if (entries.size >= ENTRIES_MAX) {
      entries.clear();
      uids.clear();
    }
    entries.set(resource.uid, entry);
    uids.set(`${resource.workspace}/${resource.kind}/${resource.name}`, resource.uid);
    return entry;
  }

  function known(workspace: string, kind: WorkloadKind, name: string): Entry | undefined {
    const uid = uids.get(`${workspace}/${kind}/${name}`);
    return uid === undefined ? undefined : entries.get(uid);
  }

  /** Caches the result if nothing changed during the read; otherwise reads again. */
  async function load(read: () => Promise<Resource | null>): Promise<Workload | null> {
    for (let look = 0; ; look += 1) {
      const readIn = era;
      const resource = await read();
      if (!resource || resource.retired || resource.deletedAt !== null) return null;
      const entry = await entryOf(resource);
      if (readIn === era) return keep(resource, entry).workload;
      if (look === LOOKS_MAX) return entry.workload;
    }
  }

  const byName = (workspace: string, kind: WorkloadKind, name: string): Workload | Promise<Workload | null> =>
    known(workspace, kind, name)?.workload ?? load(() => store.resources.get({ workspace, kind, parent: "" }, name));

  const byUid = (workspace: string, uid: string): Workload | Promise<Workload | null> =>
    entries.get(uid)?.workload ?? load(() => store.resources.getByUid(workspace, uid));

  async function behindTrigger(workspace: string, path: string): Promise<Workload | null> {
    const uid = await triggers.holderOf(workspace, path);
    return uid === null ? null : byUid(workspace, uid);
  }

  /** A word leads to one resource while that resource exists; later perhaps to a new resource of the same name. */
  function behindWord(lookup: HeldLookup, word: string): Workload | Promise<Workload | null> {
    const known = lookup.known(word);
    const entry = known && entries.get(known.uid);
    return entry ? entry.workload : lookup.find(word).then((holder) => holder && byUid(holder.workspace, holder.uid));
  }

  /** Null for a preview that is older than the restriction of its sandbox. */
  async function sandboxOf(preview: Resource): Promise<Workload | null> {
    const sandbox = await byUid(preview.workspace, preview.parent);
    return sandbox === null || preview.updatedAt < (sandbox.kept?.sinceMs ?? 0) ? null : sandbox;
  }

  async function behindPreview(preview: Resource | null): Promise<Workload | null> {
    const sandbox = preview && (await sandboxOf(preview));
    return preview && sandbox && previews.workload(preview, sandbox);
  }

  /** The claim on exactly this host, else the domain's own application, else its fallback preview. */
  async function behindHost(host: string): Promise<Workload | null> {
    const domain = await domains.nearest(host);
    if (!domain) return null;
    const owner = await store.links.holderOfAcrossWorkspaces(CLAIMS.host, host);
    if (!owner) {
      if (domain.name === host && domain.application !== null)
        return byName(domain.workspace, "application", domain.application);
      return behindPreview(await previews.fallbackOf(domain));
    }
    if (!(await domains.isOpenTo(domain, owner.workspace))) return null;
    if (owner.kind === "preview") return behindPreview(await previews.byUid(owner.workspace, owner.uid));
    return byUid(owner.workspace, owner.uid);
  }

  function ready(workload: Workload, revision: string | null): OpenLease | null {
    const running = runningOf(workload.uid).filter((instance) => instance.revision === revision);
    // Picks the least busy instance, with a loop instead of a sort because every request passes here.
    let chosen = running[0];
    for (const instance of running)
      if (chosen && activity.openOf(instance.uid) < activity.openOf(chosen.uid)) chosen = instance;
    return chosen ? leaseOn(chosen, workload, revision) : null;
  }

  const runningOf = (uid: string): Instance<Endpoint>[] =>
    (entries.get(uid)?.instances ?? []).filter(({ phase }) => phase === "running");

  function leaseOn({ uid, endpoint }: Instance<Endpoint>, workload: Workload, revision: string | null): OpenLease {
    const ends = [activity.begin(uid), ...(uid === workload.uid ? [] : [activity.begin(workload.uid)])];
    return { key: uid, endpoint, workload, revision, release: () => ends.forEach((end) => void end()) };
  }

  /**
   * Records that an instance is wanted and waits until the reconcile loop has started it. Concurrent callers share one
   * wait, so a caller that leaves does not end the wait of the others.
   */
  function ask(workload: Workload, revision: string | null): Promise<void> {
    const key = `${workload.uid}/${revision}`;
    let asking = waking.get(key);
    if (!asking) {
      const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(WAKE_MAX_MS)]);
      asking = want(workload, revision, signal).finally(() => waking.delete(key));
      waking.set(key, asking);
    }
    return asking;
  }

  async function want({ workspace, uid }: Workload, revision: string | null, signal: AbortSignal): Promise<void> {
    const wantedAt = clock.now();
    const policiesIn = policyEra;
    await store.resources.update(workspace, uid, (current) =>
      hasInstance(current, revision) ? null : { state: { ...current.state, wantedAt, wantedRevision: revision } },
    );
    const reached = await store.resources.waitFor(
      workspace,
      uid,
      (now) =>
        now === null ||
        now.deletedAt !== null ||
        hasInstance(now, revision) ||
        failureOf(now, revision, wantedAt) !== null,
      { signal },
    );
    if (!reached || reached.deletedAt !== null) throw new GatewayError("WORKLOAD_NOT_FOUND");
    if (!hasInstance(reached, revision)) {
      const insight = failureOf(reached, revision, wantedAt);
      throw new GatewayError("WORKLOAD_START_FAILED", undefined, insight ? { insight } : {});
    }
    // The policies were checked before the wait; only a policy that changed since requires a new check.
    if (policiesIn === policyEra) keep(reached, plainEntryOf(reached, deps));
    else await load(() => store.resources.getByUid(workspace, uid));
  }

  async function wake(workload: Workload, revision: string | null, signal: AbortSignal): Promise<OpenLease> {
    for (;;) {
      await ask(workload, revision);
      signal.throwIfAborted();
      const lease = ready(workload, revision);
      if (lease) return lease;
    }
  }

  /**
   * An ended copy stays recorded as running until the reconcile loop checks it. When dialling fails, this function asks
   * for the check and waits for the copy's replacement; no byte of the request has been sent by then.
   */
  async function dialCopy(lease: OpenLease, door: Door): Promise<Duplex> {
    const { workload, revision, endpoint, key } = lease;
    try {
      return await dial(endpoint, door);
    } catch (error) {
      const next = await replace(workload, key, revision);
      if (!next) throw error;
      const release = lease.release;
      lease.release = () => {
        release();
        next.release();
      };
      return dial(next.endpoint, door);
    }
  }

  async function replace(workload: Workload, copy: string, revision: string | null): Promise<OpenLease | null> {
    const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(WAKE_MAX_MS)]);
    return (await isGone(workload, copy, signal)) ? wake(workload, revision, signal) : null;
  }

  /** A sandbox that was restarted while a request waited has another endpoint than the lease. */
  const endpointNow = ({ workload, endpoint }: OpenLease): Endpoint =>
    entries.get(workload.uid)?.instances.find(({ phase }) => phase === "running")?.endpoint ?? endpoint;

  /** Requests that find the same copy gone share one check. */
  function isGone(workload: Workload, copy: string, signal: AbortSignal): Promise<boolean> {
    const known = looking.get(copy);
    if (known) return known;
    const { workspace, uid } = workload;
    const isThere = (now: Resource | null): boolean =>
      now !== null && instancesOf(now).some((one) => one.uid === copy && one.phase === "running");
    const limit = AbortSignal.any([signal, AbortSignal.timeout(COPY_LOOK_MS)]);
    const look = async (): Promise<boolean> => {
      await store.resources.update(workspace, uid, (current) =>
        isThere(current) ? { state: { ...current.state, wantedAt: clock.now() } } : null,
      );
      await store.resources.waitFor(workspace, uid, (now) => !isThere(now), { signal: limit });
      return true;
    };
    const answer = look()
      .catch((error: unknown) => {
        if (limit.aborted) return false;
        throw error;
      })
      .finally(() => looking.delete(copy));
    looking.set(copy, answer);
    return answer;
  }

  return {
    isCustomDomain: (host) => domains.covers(host),
    opened: () => domains.opened(),
    customDomains: domains.names,
    async previewTokenUntilMs({ workspace, uid }, token) {
      const preview = await previews.byUid(workspace, uid);
      const sandbox = preview && (await sandboxOf(preview));
      return preview && sandbox ? previews.tokenUntilMs(preview, sandbox, token) : 0;
    },
    resolve(target) {
      if (target.by === "name") return byName(target.workspace, target.kind, target.name);
      if (target.by === "preview") return previews.byId(target.workspace, target.id).then(behindPreview);
      if (target.by === "domain") return behindHost(target.host);
      if (target.by === "internal") return behindWord(internal, target.hash);
      if (target.by === "label") return behindWord(labels, target.label);
      if (target.by === "uid") return byUid(target.workspace, target.uid);
      return behindTrigger(target.workspace, target.path);
    },
    ready,
    runningOf,
    claim(uid, copy) {
      const [entry, instance] = [entries.get(uid), runningOf(uid).find((one) => one.uid === copy)];
      return entry && instance ? leaseOn(instance, entry.workload, instance.revision) : null;
    },
    async replacementOf(workload, copy, revision) {
      const lease = await replace(workload, copy, revision);
      lease?.release();
      return lease && { uid: lease.key, revision, endpoint: lease.endpoint, phase: "running" };
    },
    rejoin(workload, key) {
      const instance = entries.get(workload.uid)?.instances.find(({ uid }) => uid === key);
      return instance ? leaseOn(instance, workload, instance.revision) : null;
    },
    wake: (workload, revision, { signal }) => wake(workload, revision, signal),
    dial(lease, door) {
      const on = lease as OpenLease;
      if (door === "api")
        return dialDaemon(
          () => endpointNow(on),
          (endpoint) => dial(endpoint, door),
        );
      return on.workload.revisions === null ? dial(on.endpoint, door) : dialCopy(on, door);
    },
    async stop() {
      unsubscribe();
      await domains.stop();
      stopped.abort();
    },
  };
}

const instancesOf = ({ state }: { state: InstancesState<Endpoint> }): Instance<Endpoint>[] => state.instances ?? [];

const hasInstance = (resource: Resource, revision: string | null): boolean =>
  instancesOf(resource).some((instance) => instance.phase === "running" && instance.revision === revision);

/** Why waiting for an instance is useless. The failure of a new revision does not count against the active one. */
function failureOf(resource: Resource, revision: string | null, wantedAt: number): string | null {
  const { startFailure, activeRevision }: InstancesState & { activeRevision?: string } = resource.state;
  if (startFailure && startFailure.revision === revision && startFailure.at >= wantedAt) return startFailure.message;
  const failed = resource.status === "FAILED" && (revision === null || activeRevision === undefined);
  return failed ? (resource.events.at(-1)?.message ?? "") : null;
}

function plainEntryOf(resource: Resource, { isServed, self }: Pick<DirectoryDeps, "isServed" | "self">): Entry {
  const kind = resource.kind as WorkloadKind;
  const served = isServed(resource);
  return {
    instances: instancesOf(resource),
    workload: {
      kind,
      uid: resource.uid,
      workspace: resource.workspace,
      name: resource.name,
      public: kind === "application" || resource.spec.public === true,
      enabled: resource.spec.enabled !== false,
      revisions: kind === "sandbox" ? null : revisionPlanOf(resource),
      elsewhere: served || self === null || resource.node === self ? null : resource.node,
      door: served ? "platform" : doorOf(resource),
      label: hostLabelOf(resource),
      triggers: httpTriggersOf(resource),
      preview: null,
      kept: keptOf(resource),
      tools: toolRulesOf(resource),
      servers: serversOf(resource),
    },
  };
}

function doorOf({ kind, spec }: Resource): "api" | number {
  if (kind === "sandbox") return "api";
  return kind === "application" && typeof spec.port === "number" ? spec.port : WORKLOAD_PORT;
}

/** Uses the live revision that the reconcile loop recorded, never a newer one that is still being deployed. */
function revisionPlanOf(resource: Resource): RevisionPlan {
  const { state, generation } = resource;
  const canary = liveCanary(resource);
  return {
    active: typeof state.activeRevision === "string" ? state.activeRevision : String(generation),
    canary: canary?.revision,
    canaryPercent: canary?.percent,
    stickyTtlSeconds: choiceOf(resource).stickySessionTtl,
  };
}
