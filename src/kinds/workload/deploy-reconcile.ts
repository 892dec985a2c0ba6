/** Builds, starts, switches, scales and ends the copies of a workload, as deploy-plan.ts decides. */

import { withOutput, withoutOutput } from "../../contract/crash-output.ts";
import { PlatformError } from "../../contract/errors.ts";
import type { Instance } from "../../contract/instance.ts";
import { type LogSource, SEVERITY } from "../../contract/log-line.ts";
import { choiceOf, liveCanary } from "../../contract/revision-share.ts";
import { uuidv7 } from "../../lib/ids.ts";
import { MINUTE_MS, SECOND_MS, toIso } from "../../lib/time/clock.ts";
import { dial } from "../../node/dial/dial.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import type { Observed } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Modification } from "../../store/resources/resources.ts";
import type { Revision } from "../../store/resources/revision.ts";
import { isServed } from "../hub/servers.ts";
import { eventTeller, pullingEvent, type StartImage } from "../image/pull.ts";
import type { Deps, ReconcileContext, Reconciler } from "../port.ts";
import { removeScratch } from "../sandbox/machine.ts";
import { beginBuild, builderUid, keepBundle } from "./bundle.ts";
import { copyMachine, portOf } from "./copy-spec.ts";
import {
  type CopyObserved,
  canaryOf,
  crashPauseMs,
  type DeployObserved,
  type DeployStep,
  nothingToRun,
  planDeploy,
  targetOf,
} from "./deploy-plan.ts";
import {
  afterActivation,
  afterCrash,
  type Copy,
  codeOf,
  type DeployState,
  runtimeOf,
  stateOf,
  type Workload,
} from "./deploy-state.ts";
import { logTag } from "./log-tag.ts";
import { workloadSpec } from "./spec.ts";

const SCALE_MAX_DEFAULT = 10;
/** A copy that ran this long was healthy: its end starts a new count of crashes. */
const HEALTHY_MS = MINUTE_MS;
const GRACE_MS = 5000;
/** Bytes from the end of a log that are quoted in an event. */
const TAIL_BYTES = 1500;
const AUTO_GENERATED = /^x-[a-z0-9]+-auto-generated$/;

export const deployReconciler: Reconciler<DeployObserved, DeployStep, Workload> = {
  async observe(resource, { deps }) {
    const revisions = await deps.store.resources.revisionsOf(resource.workspace, resource.uid);
    const kept = revisions.map(({ id }) => id);
    const target = targetOf(resource, { kept });
    const state = stateOf(resource);
    const toBuild = (target === state.activeRevision && canaryOf(resource, { kept })) || target;
    const active = revisions.find(({ id }) => id === (state.activeRevision ?? target));
    const { minScale = 0, maxScale = SCALE_MAX_DEFAULT } = runtimeOf(resource.kind, active?.spec ?? resource.spec);
    const copies = await Promise.all(
      (state.copies ?? []).map(async (copy) => [copy.uid, await observeCopy(copy, resource, deps)] as const),
    );
    return {
      kept,
      served: isServed(resource, deps.settings),
      images: revisions.filter(({ spec }) => runtimeOf(resource.kind, spec).image).map(({ id }) => id),
      copies: Object.fromEntries(copies),
      builder: await observeBuild(builderUid(resource, toBuild), deps),
      minScale,
      maxScale,
      exclusive: ((resource.spec.volumes ?? []) as unknown[]).length > 0,
      slowWatcher: Object.entries(resource.metadata.labels ?? {}).some(
        ([key, value]) => AUTO_GENERATED.test(key) && value === "true",
      ),
      idleAfterMs: deps.settings.idleAfterMs,
    };
  },
  plan: planDeploy,
  act: (step, resource, context) => ACTS[step.do](step as never, resource, context),
};

/** A build in a workload, or one of an image, which keeps its own time. */
async function observeBuild(uid: string, { builder, driver, clock }: Deps): Promise<DeployObserved["builder"]> {
  if (builder.beganAt(uid) === null) return driver.observe(uid);
  return { state: "running", createdAt: toIso(clock.now()) };
}

async function observeCopy(copy: Copy, resource: Resource, { driver, activity }: Deps): Promise<CopyObserved> {
  const workload = await driver.observe(copy.uid);
  const asks = copy.phase === "starting" && workload?.state === "running";
  return {
    workload,
    listening: asks && (await listens(workload.endpoint, portOf(resource))),
    openRequests: activity.openOf(copy.uid),
    lastRequestMs: activity.lastOf(copy.uid),
  };
}

const listens = (endpoint: Endpoint, port: number): Promise<boolean> =>
  dial(endpoint, port, { signal: AbortSignal.timeout(1000) }).then(
    (socket) => {
      socket.destroy();
      return true;
    },
    () => false,
  );

type StepOf<Word extends DeployStep["do"]> = Extract<DeployStep, { do: Word }>;
type Acts = {
  [Word in DeployStep["do"]]: (step: StepOf<Word>, resource: Resource, context: ReconcileContext) => Promise<void>;
};

const ACTS: Acts = {
  async build({ revision }, resource, context) {
    const code = codeOf(stateOf(resource), revision);
    if (!code) return;
    const begun = await beginBuild(resource, revision, code.source, context).catch((error: unknown) => error);
    if (begun instanceof PlatformError && begun.status < 500) return failed(revision, begun.message, context);
    if (begun instanceof Error) throw begun;
    await context.record((current) => ({
      status: "bundle" in (begun as object) ? "BUILT" : "BUILDING",
      state: withCode(current, code.owner, begun as object),
      event: "bundle" in (begun as object) ? built(revision) : { type: "building", message: "Building.", revision },
    }));
  },

  async finishBuild({ revision }, resource, context) {
    const { deps, record } = context;
    const uid = builderUid(resource, revision);
    const code = codeOf(stateOf(resource), revision);
    const builder = await deps.driver.observe(uid);
    if (!code || !builder) return;
    if (builder.exitCode === 0 && code.building) {
      const bundle = await keepBundle(resource, code.source, code.building, deps);
      await record((current) => ({
        status: "BUILT",
        state: withCode(current, code.owner, { bundle, building: undefined }),
        event: built(revision),
      }));
    } else {
      const why = builder.oom ? "it ran out of memory" : `exit code ${builder.exitCode ?? builder.exitSignal}`;
      const tail = await tailOf(uid, deps);
      if (code.building) await deps.driver.destroy(uid);
      if (code.building?.drive) await (await deps.driver.capability("drives"))?.destroy(code.building.drive);
      await failed(
        revision,
        `The build failed: ${why}.${tail} The whole log: berth logs ${resource.kind}/${resource.name} --build`,
        context,
      );
    }
    await deps.driver.destroy(uid);
  },

  async fail({ revision, why, of }, resource, context) {
    const { driver } = context.deps;
    const tail = of === undefined ? "" : await tailOf(of, context.deps);
    await endBuild(builderUid(resource, revision), context.deps);
    if (of !== undefined) await driver.destroy(of);
    await failed(revision, `${why}${tail}`, context, of);
  },

  async start({ revision }, resource, context) {
    const { deps, record, signal } = context;
    const copy: Copy = { uid: uuidv7(deps.clock.now()), revision, phase: "starting", since: deps.clock.now() };
    const live = [stateOf(resource).activeRevision, liveCanary(resource)?.revision];
    const rolling = !live.includes(revision);
    // Recorded before the start: an unrecorded copy would run for ever.
    await record((current) => ({
      state: next(current, { copies: [...(stateOf(current).copies ?? []), copy] }),
      ...(rolling ? { status: "DEPLOYING" } : {}),
    }));
    try {
      const kept = await revisionOf(resource, revision, deps);
      const { tell, told } = eventTeller((message) => record(() => pullingEvent(message)));
      const { spec, image } = await copyMachine(resource, kept, copy.uid, deps, { signal, tell }).finally(told);
      if (image.source !== undefined) await record((current) => ({ state: fromImage(current, copy.uid, image, deps) }));
      await deps.driver.create(spec, { signal });
    } catch (error) {
      await deps.driver.destroy(copy.uid);
      const final = error instanceof PlatformError && error.status < 500 ? error.message : null;
      if (final !== null && rolling) return failed(revision, final, context, copy.uid);
      const why =
        error instanceof PlatformError ? error.message : "A copy could not be started; the server's log says why.";
      await crashed(copy.uid, why, context);
      if (final === null) throw error;
    }
  },

  async ready({ uid }, _resource, context) {
    const workload = await context.deps.driver.observe(uid);
    if (!workload) return;
    await context.record((current) => ({ state: becomesReady(current, uid, workload, context.deps.clock.now()) }));
  },

  async activate({ revision, uid }, resource, context) {
    const { deps } = context;
    const workload = await deps.driver.observe(uid);
    if (!workload) return;
    const becomes = (current: Resource): State => becomesReady(current, uid, workload, deps.clock.now());
    const { imageSource } = stateOf(resource).copies?.find((copy) => copy.uid === uid) ?? {};
    const answers = imageSource === undefined ? "answers" : `answers. It runs ${imageSource}`;
    await activated(revision, answers, becomes, resource, context);
  },

  async adopt({ revision }, resource, context) {
    await activated(revision, "is what runs from now on", (current) => next(current, {}), resource, context);
  },

  async admit({ revision }, resource, { deps, record }) {
    const { canaryPercent = 0 } = choiceOf(resource);
    const message = `Revision ${revision} is the canary and takes ${canaryPercent} %.`;
    await record((current) => ({
      state: next(current, { canaryRevision: revision }),
      ...(revision === undefined ? {} : { event: { type: "canary", message, revision } }),
    }));
    if (revision !== undefined) await deps.driver.destroy(builderUid(resource, revision));
  },

  async drain({ uids }, _resource, { deps, record }) {
    const since = deps.clock.now();
    await record((current) => ({
      state: withCopies(current, (copies) =>
        copies.map((copy) => (uids.includes(copy.uid) ? { ...copy, phase: "draining", since } : copy)),
      ),
    }));
  },

  async destroy({ uids }, _resource, { deps, record }) {
    for (const uid of uids) {
      await deps.driver.destroy(uid, { graceMs: GRACE_MS });
      deps.activity.forget(uid);
    }
    await record((current) => ({ state: withoutCopies(current, uids) }));
  },

  async crashed({ uid, why }, _resource, context) {
    const tail = await tailOf(uid, context.deps);
    await context.deps.driver.destroy(uid);
    await crashed(uid, `${why}${tail}`, context);
  },

  async refuse({ revision, why }, _resource, { deps, record }) {
    const startFailure = { revision, at: deps.clock.now(), message: why };
    await record((current) => ({ state: next(current, { startFailure }) }));
  },

  async settle({ status }, resource, { record }) {
    await record(() => ({ status, observedGeneration: resource.generation }));
  },

  async wait(_step, resource, { record }) {
    await record(() => ({
      status: "DEPLOYING",
      observedGeneration: resource.generation,
      event: { type: "waiting", message: nothingToRun },
    }));
  },

  async deactivate(_step, resource, { deps, record }) {
    await destroyAll(resource, deps);
    await record((current) => ({
      status: "DEACTIVATED",
      observedGeneration: resource.generation,
      // A workload that is switched on again is rolled out from the start.
      state: { ...stateOf(current), copies: [], instances: [], activeRevision: undefined, canaryRevision: undefined },
      event: { type: "deactivated", message: "Switched off: spec.enabled is false." },
    }));
  },

  async retire(_step, resource, { deps }) {
    await destroyAll(resource, deps);
    await removeScratch(resource, workloadSpec(resource.spec).volumes ?? [], deps);
    await deps.store.resources.delete(resource.workspace, resource.uid);
  },
};

async function endBuild(uid: string, { builder, driver }: Deps): Promise<void> {
  await builder.cancel(uid);
  await driver.destroy(uid);
}

async function destroyAll(resource: Resource, deps: Deps): Promise<void> {
  const { driver, activity } = deps;
  const { copies = [], revisions = {} } = stateOf(resource);
  for (const id of Object.keys(revisions)) await endBuild(builderUid(resource, id), deps);
  await Promise.all(
    copies.map(async ({ uid }) => {
      await driver.destroy(uid, { graceMs: GRACE_MS });
      activity.forget(uid);
    }),
  );
}

async function activated(
  revision: string,
  what: string,
  becomes: (current: Resource) => State,
  resource: Resource,
  { deps, record }: ReconcileContext,
): Promise<void> {
  const kept = (await deps.store.resources.revisionsOf(resource.workspace, resource.uid)).map(({ id }) => id);
  await record((current) => ({
    status: "DEPLOYED",
    observedGeneration: resource.generation,
    state: { ...afterActivation(becomes(current), revision, kept) },
    event: { type: "deployed", message: `Revision ${revision} ${what}.`, revision },
  }));
  await deps.driver.destroy(builderUid(resource, revision));
}

async function revisionOf({ workspace, uid }: Resource, id: string, { store }: Deps): Promise<Revision> {
  const found = (await store.resources.revisionsOf(workspace, uid)).find((revision) => revision.id === id);
  if (!found) throw new PlatformError("not_found", `Revision ${id} is no longer kept.`);
  return found;
}

const built = (revision: string): Modification["event"] & object => ({ type: "built", message: "Built.", revision });

async function failed(revision: string, why: string, { deps, record }: ReconcileContext, uid?: string): Promise<void> {
  const told = await record((current) => ({
    status: "FAILED",
    observedGeneration: current.generation,
    state: {
      ...withoutCopies(current, uid === undefined ? [] : [uid]),
      revisions: withCode(current, revision, { failed: why, building: undefined }).revisions,
      ...(stateOf(current).upload?.revision === revision ? { upload: undefined } : {}),
    },
    event: { type: "failed", status: "FAILED", message: why, revision },
  }));
  if (told) tell(told, uid === undefined ? "build" : "run", revision, why, deps);
}

/** Writes the end of a copy or build to its log, without the output that is already there. */
function tell(resource: Resource, source: LogSource, revision: string, why: string, { logs }: Deps): void {
  const message = withoutOutput(why);
  logs.append(logTag(resource, source, { revision }), [{ message, severity: SEVERITY.ERROR }]);
}

async function crashed(uid: string, why: string, { deps, record }: ReconcileContext): Promise<void> {
  const now = deps.clock.now();
  deps.activity.forget(uid);
  let revision = "";
  const told = await record((current) => {
    const { copies = [], crashes = {} } = stateOf(current);
    const copy = copies.find((each) => each.uid === uid);
    if (!copy) return null;
    revision = copy.revision;
    const crash = afterCrash(crashes[revision], {
      nowMs: now,
      wasHealthy: copy.phase === "ready" && now - copy.since >= HEALTHY_MS,
      wasLive: [stateOf(current).activeRevision, liveCanary(current)?.revision].includes(revision),
    });
    const { count } = crash;
    return {
      state: {
        ...withoutCopies(current, [uid]),
        crashes: { ...crashes, [revision]: crash },
        startFailure: { revision: copy.revision, at: now, message: why },
      },
      event: { type: "crashed", message: count === 1 ? why : `${why} ${pauseAfter(count)}`, revision },
    };
  });
  if (told) tell(told, "run", revision, why, deps);
}

const pauseAfter = (count: number): string =>
  `It has ended ${count} times in a row; the next start is ${crashPauseMs(count) / SECOND_MS} s later, when it is needed.`;

/** The last output of a copy or a build, quoted in the event about its end. */
async function tailOf(uid: string, { driver }: Deps): Promise<string> {
  const read = async (stream: "stdout" | "stderr"): Promise<string> => {
    try {
      const { size } = await driver.readOutput(uid, stream, 0, 0);
      const { bytes } = await driver.readOutput(uid, stream, Math.max(0, size - TAIL_BYTES), TAIL_BYTES);
      return bytes.toString("utf8").trim();
    } catch {
      return ""; // an unreadable log adds nothing to the reason
    }
  };
  const text = (await read("stderr")) || (await read("stdout"));
  return withOutput("", text);
}

type State = Record<string, unknown> & DeployState;

const next = (current: Resource, change: Partial<DeployState>): State => ({ ...stateOf(current), ...change });

const withCode = (current: Resource, revision: string, change: object): State => {
  const { revisions = {} } = stateOf(current);
  return next(current, { revisions: { ...revisions, [revision]: { ...revisions[revision], ...change } } });
};

/** Changes the copies and updates `instances`, which the gateway reads: removed copies go, draining ones are marked. */
function withCopies(current: Resource, change: (copies: Copy[]) => Copy[]): State {
  const { copies = [], instances = [] } = stateOf(current);
  const changed = change(copies);
  const phases = new Map(changed.map(({ uid, phase }) => [uid, phase]));
  return next(current, {
    copies: changed,
    instances: instances.flatMap((instance) => {
      const phase = phases.get(instance.uid);
      if (phase === undefined) return [];
      return [phase === "draining" ? { ...instance, phase } : instance];
    }),
  });
}

const withoutCopies = (current: Resource, uids: readonly string[]): State =>
  withCopies(current, (copies) => copies.filter(({ uid }) => !uids.includes(uid)));

function becomesReady(current: Resource, uid: string, { endpoint }: Observed, since: number): State {
  const { copies = [], instances = [] } = stateOf(current);
  const copy = copies.find((each) => each.uid === uid);
  if (!copy) return next(current, {});
  const instance: Instance<Endpoint> = { uid, revision: copy.revision, endpoint, phase: "running" };
  return next(current, {
    copies: copies.map((each) => (each.uid === uid ? { ...each, phase: "ready", since } : each)),
    instances: [...instances.filter((each) => each.uid !== uid), instance],
  });
}

/** Records the image that a copy runs. The time that its pull took does not count for the start of the copy. */
function fromImage(current: Resource, uid: string, { source }: StartImage, { clock }: Deps): State {
  const since = clock.now();
  return withCopies(current, (copies) =>
    copies.map((copy) => (copy.uid === uid && source !== undefined ? { ...copy, since, imageSource: source } : copy)),
  );
}
