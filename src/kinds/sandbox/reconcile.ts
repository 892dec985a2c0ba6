/** Creates, freezes, thaws and removes sandboxes, as plan.ts decides. */
import { PlatformError } from "../../contract/errors.ts";
import { need } from "../../node/capabilities/need.ts";
import { type DestroyOptions, unheldLimits } from "../../node/driver.ts";
import type { Observed } from "../../node/workload.ts";
import { eventTeller, pullingEvent } from "../image/pull.ts";
import type { Platform, ReconcileContext, Reconciler } from "../port.ts";
import { sandboxActivity } from "./activity.ts";
import { beginSandboxBuild, buildIdOf, failBuild } from "./build.ts";
import { applyDrives } from "./drives.ts";
import { OTHER_BASE } from "./kept-and-lost.ts";
import type { Sandbox } from "./kind.ts";
import { removeScratch, sandboxMachine } from "./machine.ts";
import {
  fingerprint,
  instanceOf,
  isPaused,
  isPressed,
  planSandbox,
  quietSince,
  type SandboxObserved,
  type SandboxStep,
} from "./plan.ts";
import { applyResize, dropResize } from "./resize-step.ts";
import type { SandboxState } from "./state.ts";

export const sandboxReconciler: Reconciler<SandboxObserved, SandboxStep, Sandbox> = {
  async observe(sandbox, { deps }) {
    const workload = await deps.driver.observe(sandbox.uid);
    const openRequests = deps.activity.openOf(sandbox.uid);
    const lastRequestMs = deps.activity.lastOf(sandbox.uid);
    const { standbyAfterMs } = deps.settings;
    const freezes = (await deps.driver.capability("freezing")) !== null;
    const quiet =
      freezes &&
      workload?.state === "running" &&
      openRequests === 0 &&
      (deps.clock.now() - quietSince(sandbox, lastRequestMs) >= standbyAfterMs || isPressed(sandbox, lastRequestMs));
    return {
      workload,
      openRequests,
      lastRequestMs,
      standbyAfterMs,
      freezes,
      wanted: wantedOf(sandbox, deps),
      builds: deps.builder.beganAt(buildIdOf(sandbox)) !== null,
      inside: quiet ? await sandboxActivity(workload.endpoint) : null,
    };
  },
  plan: planSandbox,
  act: (step, sandbox, context) => ACTS[step.do](sandbox, context, "why" in step ? step.why : ""),
};

type Act = (sandbox: Sandbox, context: ReconcileContext<Sandbox>, why: string) => Promise<void>;

const ACTS: Record<SandboxStep["do"], Act> = {
  async build(sandbox, { deps }) {
    beginSandboxBuild(sandbox, deps);
  },

  async late(sandbox, { deps }) {
    const late = new PlatformError("bad_request", "No archive came before the upload address expired.");
    await failBuild(sandbox, { revision: sandbox.state.upload?.revision ?? "" }, late, deps);
  },

  create: (sandbox, context, why) => start(sandbox, context, { type: "deployed", message: why }),

  async restart(sandbox, context, why) {
    await end(sandbox, context, { keepFiles: true });
    await start(sandbox, context, { type: "restarted", message: why });
  },

  destroy: (sandbox, context) => end(sandbox, context),
  halt: (sandbox, context) => end(sandbox, context, { keepFiles: true }),

  async freeze(sandbox, context) {
    const { deps, record } = context;
    const lastUsedAt = deps.activity.lastOf(sandbox.uid);
    const { pausedAt = 0 } = isPaused(sandbox) ? sandbox.state : {};
    const message =
      pausedAt > 0
        ? "Put to sleep at a client's wish"
        : isPressed(sandbox, lastUsedAt)
          ? "Asleep early, because memory of the machine is short"
          : "Asleep after a time without requests";
    const workload = await (await need(deps.driver, "freezing")).freeze(sandbox.uid);
    await record((current) => ({
      state: next(current, {
        ...computeOf(workload),
        idleSince: deps.clock.now(),
        resized: undefined,
        ...(lastUsedAt ? { lastUsedAt } : {}),
      }),
      event: { type: "standby", message: `${message}; the next request wakes it.` },
    }));
    // A request that read the record before the freeze now waits inside the frozen sandbox; only this thaw wakes it.
    // Streams that were open when a client asked for sleep go on when the sandbox is woken.
    const isNew = pausedAt === 0 || deps.activity.lastOf(sandbox.uid) > pausedAt;
    if (isNew && deps.activity.openOf(sandbox.uid) > 0) await ACTS.thaw(sandbox, context, "");
  },

  /** Memory that cannot be written stays where it is, and the attempt is repeated after the same time. */
  async hibernate(sandbox, context) {
    const { deps, record } = context;
    const { pressedAt = 0, idleSince = 0 } = sandbox.state;
    const why = pressedAt > idleSince ? ", because memory of the machine was short" : "";
    const failed = await need(deps.driver, "hibernation")
      .then((found) => found.hibernate(sandbox.uid))
      .then(
        () => null,
        (error: unknown) => (error instanceof PlatformError ? error.message : "See the log."),
      );
    await record((current) => ({
      state: next(current, failed === null ? {} : { hibernateTriedAt: deps.clock.now() }),
      event:
        failed === null
          ? { type: "hibernated", message: `Its memory lies on disk${why}; the next request brings it back.` }
          : { type: "standby", message: `Its memory stays in use: ${failed}` },
    }));
    if (deps.activity.openOf(sandbox.uid) > 0) await ACTS.thaw(sandbox, context, "");
  },

  async thaw(sandbox, context) {
    const workload = await (await need(context.deps.driver, "freezing")).thaw(sandbox.uid);
    await running(sandbox, workload, context, { type: "resumed", message: "Awake again for a request." });
  },

  async record(sandbox, { deps, record }) {
    const workload = await deps.driver.observe(sandbox.uid);
    if (!workload) return;
    await record((current) => ({
      status: "DEPLOYED",
      observedGeneration: sandbox.generation,
      state: next(current, { ...computeOf(workload), deployed: wantedOf(sandbox, deps) }),
    }));
  },

  drives: applyDrives,
  resize: applyResize,

  async expire(_sandbox, { record }, why) {
    await record((current) =>
      current.deletedAt === null
        ? { deleted: true, intent: true, status: "DELETING", event: { type: "expired", message: why } }
        : null,
    );
  },

  async deactivate(sandbox, { record }) {
    await record((current) => ({
      status: "DEACTIVATED",
      observedGeneration: sandbox.generation,
      state: { ...current.state, instances: [], compute: undefined },
      event: { type: "deactivated", message: "Switched off: spec.enabled is false." },
    }));
  },

  async retire(sandbox, { deps }) {
    const { store, activity, clock } = deps;
    await removeScratch(sandbox, sandbox.spec.volumes ?? [], deps);
    await deps.builder.cancel(buildIdOf(sandbox));
    activity.forget(sandbox.uid);
    await store.write(async (tx) => {
      for (const child of await store.resources.childrenIn(tx, sandbox.uid, CHILDREN_MAX))
        await store.resources.remove(tx, sandbox.workspace, child.uid);
      await store.resources.modify(tx, sandbox.workspace, sandbox.uid, (current) => ({
        retire: true,
        status: "TERMINATED",
        observedGeneration: current.generation,
        state: { ...current.state, instances: [], compute: undefined, terminatedAt: clock.now() },
        event: { type: "terminated", message: "Gone, with its files." },
      }));
    });
  },
};

async function start(
  sandbox: Sandbox,
  context: ReconcileContext<Sandbox>,
  event: { type: string; message: string },
): Promise<void> {
  const { deps, signal, record } = context;
  await dropResize(sandbox, context);
  const { tell, told } = eventTeller((message) => record(() => pullingEvent(message)));
  const { spec, image } = await sandboxMachine(sandbox, deps, { signal, tell }).finally(told);
  const workload = await deps.driver.create(spec, { signal });
  const runs = image.source === undefined ? [] : [`It runs ${image.source}.`];
  const message = [event.message, ...(workload.otherBase ? [OTHER_BASE] : []), ...runs].join(" ");
  await running(sandbox, workload, context, { type: event.type, message }, image.source);
}

async function end(
  { uid, spec, deletedAt }: Sandbox,
  { deps, record }: ReconcileContext<Sandbox>,
  options: Pick<DestroyOptions, "keepFiles"> = {},
): Promise<void> {
  // Without an instance in the record, requests wait for the new machine instead of failing on the old endpoint.
  if (deletedAt === null) await record((current) => ({ state: next(current, { instances: [] }) }));
  const graceS = spec.runtime?.terminationGracePeriodSeconds ?? 0;
  await deps.driver.destroy(uid, { graceMs: graceS * 1000, ...options });
}

const computeOf = (workload: Observed): Pick<SandboxState, "instances" | "compute"> => ({
  instances: [instanceOf(workload)],
  compute: workload.state === "frozen" ? "STANDBY" : "RUNNING",
});

/** Previews, preview tokens and schedules of one sandbox. */
const CHILDREN_MAX = 10_000;

async function running(
  sandbox: Sandbox,
  workload: Observed,
  { deps, record }: ReconcileContext<Sandbox>,
  event: { type: string; message: string },
  imageSource = sandbox.state.imageSource,
): Promise<void> {
  const probe = await deps.driver.probe();
  const { storageMb } = sandbox.spec.runtime ?? {};
  const unheld = [...unheldLimits(probe), ...(storageMb !== undefined && probe.roots === "unsized" ? ["storage"] : [])];
  await record((current) => ({
    status: "DEPLOYED",
    observedGeneration: sandbox.generation,
    state: next(current, {
      ...computeOf(workload),
      deployed: wantedOf(sandbox, deps),
      idleSince: deps.clock.now(),
      resized: undefined,
      restoring: undefined,
      isolation: workload.grade,
      unheld,
      trusts: workload.mounts.some(({ platform }) => platform),
      imageSource,
    }),
    event,
  }));
}

const wantedOf = (sandbox: Sandbox, deps: Platform): string =>
  fingerprint(sandbox, deps.store.resources.secretsOf(sandbox));

const next = (current: Sandbox, change: Partial<SandboxState>): Record<string, unknown> => ({
  ...current.state,
  ...change,
});
