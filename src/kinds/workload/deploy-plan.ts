/**
 * Decides how a workload gets to the wanted revision, and how many copies of it run. Pure: every rule is a row of the
 * test table.
 *
 * A rollout starts one copy of the new revision beside the old ones and switches once the copy listens. If the rollout
 * fails, the active revision keeps answering.
 */
import { choiceOf, liveCanary } from "../../contract/revision-share.ts";
import { backoffMs } from "../../lib/backoff.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { Observed } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Plan } from "../port.ts";
import { type Copy, codeOf, type DeployState, stateOf } from "./deploy-state.ts";

export interface CopyObserved {
  workload: Observed | null;
  listening: boolean;
  openRequests: number;
  /** 0 when no request came since this server started. */
  lastRequestMs: number;
}

export interface DeployObserved {
  /** Ids of the stored revisions, newest first. */
  kept: string[];
  /** The platform answers for the workload itself; no copy runs. */
  served: boolean;
  /** Ids of the stored revisions that run an image. */
  images: string[];
  copies: Record<string, CopyObserved>;
  /** The build of the wanted revision; once that one is active, the build of the canary. */
  builder: Pick<Observed, "state" | "createdAt"> | null;
  minScale: number;
  maxScale: number;
  /** Set for jobs: no copies run, each task starts its own workload. */
  onDemand?: boolean;
  /** The workload mounts something that only one copy can have. */
  exclusive: boolean;
  /** The client polls so seldom that it would miss a quick build; see BUILD_VISIBLE_MS. */
  slowWatcher: boolean;
  /** Idle timeout of a copy. */
  idleAfterMs: number;
}

export type DeployStep =
  | { do: "build"; revision: string }
  | { do: "finishBuild"; revision: string }
  | { do: "fail"; revision: string; why: string; of?: string }
  | { do: "start"; revision: string }
  | { do: "ready"; uid: string }
  | { do: "activate"; revision: string; uid: string }
  | { do: "adopt"; revision: string }
  | { do: "admit"; revision: string | undefined }
  | { do: "drain"; uids: string[] }
  | { do: "destroy"; uids: string[] }
  | { do: "crashed"; uid: string; why: string }
  | { do: "refuse"; revision: string; why: string }
  | { do: "settle"; status: "DEPLOYED" | "FAILED" }
  | { do: "wait" }
  | { do: "deactivate" }
  | { do: "retire" };

/** A copy that does not listen within this time has failed. */
export const READY_WITHIN_MS = MINUTE_MS;
export const BUILD_MAX_MS = 15 * MINUTE_MS;
/** Minimum time that a build stays visible: some clients poll every three seconds and insist on seeing it. */
const BUILD_VISIBLE_MS = 4500;
/** How long a draining copy may finish its requests: the longest time that a request may take. */
export const DRAIN_MAX_MS = 15 * MINUTE_MS;
/** Open requests per copy above which another copy is started. */
const CONCURRENCY = 50;
const SOON_MS = 50;
const START_LOOK_MIN_MS = 5;
const START_LOOK_MAX_MS = 500;
const BUILD_LOOK_MS = 300;
const LOOK_MS = SECOND_MS;
/** Requests wait for a restart that is due within this time; for later ones they are refused at once. */
const HOLD_MAX_MS = 5 * SECOND_MS;
/** Failed starts after which a new revision fails; with the pauses between them about half a minute. */
const FIRST_STARTS_MAX = 5;
const CRASH_BACKOFF = { baseMs: SECOND_MS, maxMs: MINUTE_MS };

export function planDeploy(resource: Resource, observed: DeployObserved, nowMs: number): Plan<DeployStep> {
  const state = stateOf(resource);
  if (resource.deletedAt !== null) return { steps: [{ do: "retire" }] };
  if (resource.spec.enabled === false) {
    const off = resource.status === "DEACTIVATED" && (state.copies ?? []).length === 0;
    return { steps: off && isSettled(resource) ? [] : [{ do: "deactivate" }] };
  }
  if (observed.served) return planServed(resource);
  const target = targetOf(resource, observed);
  const rollout = planRollout(resource, target, observed, nowMs);
  const serving: Plan<DeployStep> = observed.onDemand ? { steps: [] } : planServing(resource, target, observed, nowMs);
  const refusal = planRefusal(state, target, observed, nowMs);
  const againMs = Math.min(rollout.againMs ?? Number.POSITIVE_INFINITY, serving.againMs ?? Number.POSITIVE_INFINITY);
  return {
    steps: [...rollout.steps, ...serving.steps, ...refusal],
    ...(Number.isFinite(againMs) ? { againMs } : {}),
  };
}

/** Removes copies from the time before the platform answered for the workload. */
function planServed(resource: Resource): Plan<DeployStep> {
  const uids = (stateOf(resource).copies ?? []).map(({ uid }) => uid);
  const { steps } = settled(resource, "DEPLOYED");
  return { steps: [...steps, ...(uids.length > 0 ? [{ do: "destroy" as const, uids }] : [])] };
}

const isSettled = ({ generation, observedGeneration }: Resource): boolean => generation === observedGeneration;

/** The chosen revision, otherwise the newest. */
export function targetOf({ spec, generation }: Resource, { kept }: Pick<DeployObserved, "kept">): string {
  const { active } = choiceOf({ spec });
  return active && kept.includes(active) ? active : (kept[0] ?? String(generation));
}

function planRollout(resource: Resource, target: string, observed: DeployObserved, nowMs: number): Plan<DeployStep> {
  const state = stateOf(resource);
  if (target === state.activeRevision) return planCanary(resource, observed, nowMs);
  if (state.revisions?.[target]?.failed !== undefined) return settled(resource, "FAILED");
  if (state.upload?.revision === target) return planUpload(state.upload, nowMs);
  if (!observed.images.includes(target)) {
    const code = codeOf(state, target);
    if (!code) return { steps: isSettled(resource) ? [] : [{ do: "wait" }] };
    if (!code.bundle) return planBuild(target, observed, nowMs);
    const visibleMs = (code.uploadedAt ?? 0) + BUILD_VISIBLE_MS - nowMs;
    if (observed.slowWatcher && visibleMs > 0) return { steps: [], againMs: visibleMs };
  }
  return observed.onDemand
    ? { steps: [{ do: "adopt", revision: target }] }
    : planSwitch(state, target, observed, nowMs);
}

function planUpload({ revision, expiresAt }: NonNullable<DeployState["upload"]>, nowMs: number): Plan<DeployStep> {
  if (expiresAt > nowMs) return { steps: [], againMs: expiresAt - nowMs };
  return fail(revision, "No archive came before the upload address expired.");
}

/**
 * A canary is built like the active revision and gets its share only once it can run. It has no copies until a request
 * asks for it.
 */
function planCanary(resource: Resource, observed: DeployObserved, nowMs: number): Plan<DeployStep> {
  const state = stateOf(resource);
  const canary = canaryOf(resource, observed);
  if (canary === undefined) return admitted(resource, undefined, "DEPLOYED");
  if (state.revisions?.[canary]?.failed !== undefined) return admitted(resource, undefined, "FAILED");
  if (state.upload?.revision === canary) return planUpload(state.upload, nowMs);
  if (observed.images.includes(canary)) return admitted(resource, canary, "DEPLOYED");
  const code = codeOf(state, canary);
  if (!code) return admitted(resource, undefined, "DEPLOYED");
  return code.bundle ? admitted(resource, canary, "DEPLOYED") : planBuild(canary, observed, nowMs);
}

function admitted(resource: Resource, revision: string | undefined, status: "DEPLOYED" | "FAILED"): Plan<DeployStep> {
  const { steps } = settled(resource, status);
  return { steps: stateOf(resource).canaryRevision === revision ? steps : [{ do: "admit", revision }, ...steps] };
}

/** The canary revision wanted beside the active one, whatever its share. */
export function canaryOf({ spec, state }: Resource, { kept }: Pick<DeployObserved, "kept">): string | undefined {
  const { canary } = choiceOf({ spec });
  return canary && canary !== stateOf({ state }).activeRevision && kept.includes(canary) ? canary : undefined;
}

function planBuild(revision: string, { builder }: DeployObserved, nowMs: number): Plan<DeployStep> {
  if (!builder) return { steps: [{ do: "build", revision }] };
  if (builder.state === "exited") return { steps: [{ do: "finishBuild", revision }] };
  if (Date.parse(builder.createdAt) + BUILD_MAX_MS > nowMs) return { steps: [], againMs: BUILD_LOOK_MS };
  return fail(revision, `The build took longer than ${BUILD_MAX_MS / MINUTE_MS} minutes.`);
}

function planSwitch(state: DeployState, revision: string, observed: DeployObserved, nowMs: number): Plan<DeployStep> {
  const { copies = [] } = state;
  const copy = copies.find((each) => each.revision === revision && each.phase !== "draining");
  if (!copy) {
    const others = copies.filter((each) => each.phase !== "draining").map(({ uid }) => uid);
    if (!observed.exclusive || copies.length === 0) return planFirstStart(state, revision, nowMs);
    // With an exclusive mount the old copies must end before the new one starts, so the switch has a gap.
    return others.length > 0 ? { steps: [{ do: "drain", uids: others }] } : { steps: [], againMs: SOON_MS };
  }
  const seen = observed.copies[copy.uid];
  if (!seen?.workload) return { steps: [{ do: "destroy", uids: [copy.uid] }] };
  if (seen.workload.state === "exited")
    return fail(revision, `It ended before it listened (${endOf(seen.workload)}).`, copy.uid);
  if (copy.phase === "ready" || seen.listening) return { steps: [{ do: "activate", revision, uid: copy.uid }] };
  if (copy.since + READY_WITHIN_MS > nowMs) return { steps: [], againMs: startLookMs(copy.since, nowMs) };
  return fail(revision, neverListened, copy.uid);
}

/** A revision that does not answer yet and that the machine cannot start is retried a few times with growing pauses before the deploy fails. */
function planFirstStart(state: DeployState, revision: string, nowMs: number): Plan<DeployStep> {
  const { firstStarts = 0, lastAt = 0 } = state.crashes?.[revision] ?? {};
  if (firstStarts >= FIRST_STARTS_MAX)
    return fail(revision, state.startFailure?.message ?? "A copy could not be started.");
  const pauseMs = firstStarts === 0 ? 0 : lastAt + crashPauseMs(firstStarts) - nowMs;
  return pauseMs > 0 ? { steps: [], againMs: pauseMs } : { steps: [{ do: "start", revision }] };
}

/** Polls a starting copy at a tenth of its age: quick starts are seen quickly, slow ones cost few polls. */
const startLookMs = (since: number, nowMs: number): number =>
  Math.min(Math.max((nowMs - since) / 10, START_LOOK_MIN_MS), START_LOOK_MAX_MS);

const neverListened = `It did not listen on the port in PORT within ${READY_WITHIN_MS / SECOND_MS} s.`;

function planServing(resource: Resource, target: string, observed: DeployObserved, nowMs: number): Plan<DeployStep> {
  const state = stateOf(resource);
  const live = liveRevisions(resource);
  const rolling = target === state.activeRevision ? null : target;
  const steps: DeployStep[] = [];
  let againMs = Number.POSITIVE_INFINITY;
  for (const copy of state.copies ?? []) {
    if (copy.revision === rolling && copy.phase !== "draining" && !live.includes(copy.revision)) continue;
    const plan = planCopy(copy, observed.copies[copy.uid], live, nowMs);
    steps.push(...plan.steps);
    againMs = Math.min(againMs, plan.againMs ?? againMs);
  }
  for (const revision of live) {
    // With an exclusive mount, the revision that is being rolled out has priority.
    if (observed.exclusive && rolling !== null && state.revisions?.[rolling]?.failed === undefined) continue;
    const plan = planScale(revision, revision === state.activeRevision, state, observed, nowMs);
    steps.push(...plan.steps);
    againMs = Math.min(againMs, plan.againMs ?? againMs);
  }
  return { steps, ...(Number.isFinite(againMs) ? { againMs } : {}) };
}

/** Refuses waiting requests at once when no copy will start soon. */
function planRefusal(state: DeployState, target: string, { images }: DeployObserved, nowMs: number): DeployStep[] {
  const { wantedAt = 0, wantedRevision: revision, startFailure } = state;
  if (typeof revision !== "string" || wantedAt <= (startFailure?.at ?? 0)) return [];
  const why = reasonNotToWait(state, target, revision, images, nowMs);
  return why === null ? [] : [{ do: "refuse", revision, why }];
}

function reasonNotToWait(
  state: DeployState,
  target: string,
  revision: string,
  images: string[],
  nowMs: number,
): string | null {
  if (state.activeRevision === undefined) {
    if (state.upload?.revision === target) return "Its code has not been sent yet.";
    if (!images.includes(target) && !codeOf(state, target)) return nothingToRun;
  }
  const pauseMs = restartPause(state, revision, nowMs);
  return pauseMs > HOLD_MAX_MS
    ? `It ends again and again; the next start is in ${Math.ceil(pauseMs / SECOND_MS)} s. ${state.startFailure?.message ?? ""}`
    : null;
}

export const nothingToRun = "Nothing to run yet: send its code with ?upload=true, or name an image.";

/** Milliseconds until a crashing revision may be started again. */
function restartPause({ crashes }: DeployState, revision: string, nowMs: number): number {
  const crash = crashes?.[revision];
  return crash ? crash.lastAt + crashPauseMs(crash.count) - nowMs : 0;
}

/** Pause after `count` crashes in a row without a healthy run between them. */
export const crashPauseMs = (count: number): number => backoffMs(count - 1, CRASH_BACKOFF, () => 1);

/** The active revision, and the canary if it has a share. */
function liveRevisions(resource: Resource): string[] {
  const { activeRevision } = stateOf(resource);
  if (activeRevision === undefined) return [];
  const canary = liveCanary(resource);
  return canary ? [activeRevision, canary.revision] : [activeRevision];
}

function planCopy(copy: Copy, seen: CopyObserved | undefined, live: string[], nowMs: number): Plan<DeployStep> {
  const { uid, phase, since } = copy;
  if (!seen?.workload) return { steps: [{ do: "destroy", uids: [uid] }] };
  if (phase === "draining") {
    const over = seen.openRequests === 0 || since + DRAIN_MAX_MS <= nowMs || seen.workload.state === "exited";
    return over ? { steps: [{ do: "destroy", uids: [uid] }] } : { steps: [], againMs: LOOK_MS };
  }
  if (!live.includes(copy.revision)) return { steps: [{ do: "drain", uids: [uid] }] };
  if (seen.workload.state === "exited")
    return { steps: [{ do: "crashed", uid, why: `A copy ended (${endOf(seen.workload)}).` }] };
  if (phase === "ready") return { steps: [], againMs: LOOK_MS };
  if (seen.listening) return { steps: [{ do: "ready", uid }] };
  if (since + READY_WITHIN_MS > nowMs) return { steps: [], againMs: startLookMs(since, nowMs) };
  return { steps: [{ do: "crashed", uid, why: neverListened }] };
}

function planScale(
  revision: string,
  isActive: boolean,
  state: DeployState,
  observed: DeployObserved,
  nowMs: number,
): Plan<DeployStep> {
  const all = (state.copies ?? []).filter((copy) => copy.revision === revision);
  const copies = all.filter(({ phase }) => phase !== "draining");
  const open = copies.reduce((sum, { uid }) => sum + (observed.copies[uid]?.openRequests ?? 0), 0);
  const lastUseMs = Math.max(
    state.wantedRevision === revision ? (state.wantedAt ?? 0) : 0,
    ...copies.map(({ uid, since }) => Math.max(since, observed.copies[uid]?.lastRequestMs ?? 0)),
  );
  const inUse = open > 0 || lastUseMs + observed.idleAfterMs > nowMs;
  const max = observed.exclusive ? 1 : observed.maxScale;
  const min = isActive ? observed.minScale : 0;
  const desired = Math.min(max, Math.max(min, Math.ceil(open / CONCURRENCY), inUse ? 1 : 0));
  if (copies.length < desired) {
    const restartMs = restartPause(state, revision, nowMs);
    if (restartMs > 0) return { steps: [], againMs: restartMs };
    // Starts one copy at a time: recording it triggers the next look.
    return observed.exclusive && all.length > 0
      ? { steps: [], againMs: LOOK_MS }
      : { steps: [{ do: "start", revision }] };
  }
  const idle = copies.filter(({ uid, phase, since }) => {
    const seen = observed.copies[uid];
    const usedMs = Math.max(since, seen?.lastRequestMs ?? 0);
    return phase === "ready" && seen?.openRequests === 0 && usedMs + observed.idleAfterMs <= nowMs;
  });
  const surplus = idle.slice(0, copies.length - desired).map(({ uid }) => uid);
  return { steps: surplus.length > 0 ? [{ do: "drain", uids: surplus }] : [] };
}

const endOf = ({ oom, exitCode, exitSignal }: Observed): string =>
  oom ? "out of memory" : exitSignal ? `signal ${exitSignal}` : `exit code ${exitCode ?? "unknown"}`;

const fail = (revision: string, why: string, of?: string): Plan<DeployStep> => ({
  steps: [{ do: "fail", revision, why, ...(of === undefined ? {} : { of }) }],
});

const settled = (resource: Resource, status: "DEPLOYED" | "FAILED"): Plan<DeployStep> => ({
  steps: resource.status === status && isSettled(resource) ? [] : [{ do: "settle", status }],
});
