/**
 * Decides what to do with a sandbox from its record and the observed state. Pure: every rule is a row of the test
 * table.
 */

import { createHash } from "node:crypto";
import type { Instance } from "../../contract/instance.ts";
import type { SandboxActivity } from "../../contract/sandbox-wire.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import type { Observed } from "../../node/workload.ts";
import type { DriveMountIntent } from "../drive/mount-intent.ts";
import { mountsOf } from "../drive/mounts.ts";
import type { Plan } from "../port.ts";
import { expiryOf } from "./expiry.ts";
import { hibernatesInMs } from "./hibernation.ts";
import { keptAndLost, restartedAfter } from "./kept-and-lost.ts";
import type { Sandbox } from "./kind.ts";

export interface SandboxObserved {
  workload: Observed | null;
  openRequests: number;
  /** 0 when no request came since this server started. */
  lastRequestMs: number;
  /** What keeps the sandbox awake; asked only when it is due to fall asleep. */
  inside: SandboxActivity | null;
  /** Fingerprint of the wanted sandbox; see `fingerprint`. */
  wanted: string;
  /** Idle time before the sandbox may fall asleep. */
  standbyAfterMs: number;
  /** Whether the driver can freeze a workload; otherwise there is no standby. */
  freezes: boolean;
  /** The build of its image goes on, or waits for its turn. */
  builds: boolean;
}

export type SandboxStep =
  | { do: "build" }
  | { do: "late" }
  | { do: "create"; why: string }
  | { do: "restart"; why: string }
  | { do: "destroy" }
  | { do: "halt" }
  | { do: "freeze" }
  | { do: "hibernate" }
  | { do: "thaw" }
  | { do: "drives" }
  | { do: "resize" }
  | { do: "expire"; why: string }
  | { do: "deactivate" }
  | { do: "retire" }
  | { do: "record" };

/**
 * A change of image, memory, processors, storage, isolation, variables, volumes or ports creates the sandbox again; other
 * changes apply in place. The ports are the last part, `2:{sandbox}:{ports}`, which older versions did not record.
 */
export function fingerprint({ spec }: Pick<Sandbox, "spec">, secrets: Record<string, string>): string {
  const { image, memory, cpus, storageMb, envs, isolation, ports } = spec.runtime ?? {};
  const hidden = Object.entries(secrets).filter(([path]) => path.startsWith("/spec/runtime/"));
  // Without storage, isolation and processors the text is as before there was any.
  const storage = storageMb === undefined ? [] : [storageMb];
  const grade = isolation === undefined ? [] : [{ isolation }];
  const share = cpus === undefined ? [] : [{ cpus }];
  const own = [...storage, ...grade, ...share];
  const members = [image, memory, envs ?? [], spec.volumes ?? [], Object.fromEntries(hidden), ...own];
  return `${FORMULA}:${digestOf(members)}:${digestOf(ports ?? [])}`;
}

const digestOf = (value: unknown): string =>
  createHash("sha256").update(canonicalJson(value)).digest("hex").slice(0, 16);

/** Whether the recorded fingerprint is that of the wanted sandbox. One without ports is compared without them. */
export const isDeployedAs = (deployed: string | undefined, wanted: string): boolean =>
  deployed === wanted || (deployed !== undefined && WITHOUT_PORTS.test(deployed) && wanted.startsWith(`${deployed}:`));

const WITHOUT_PORTS = /^2:[0-9a-f]{16}$/;

/** Version of the fingerprint algorithm. Version 1 had no prefix. */
const FORMULA = "2";

const formulaOf = (made: string): string => /^(\d+):/.exec(made)?.[1] ?? "1";

/**
 * Whether the sandbox must be created again. Fingerprints of different algorithms cannot be compared; such a sandbox is
 * created again only when its spec has changed.
 */
function isAnother({ generation, observedGeneration, state }: Sandbox, wanted: string): boolean {
  const { deployed = "" } = state;
  if (isDeployedAs(deployed, wanted)) return false;
  return formulaOf(deployed) === formulaOf(wanted) || observedGeneration !== generation;
}

export function planSandbox(sandbox: Sandbox, observed: SandboxObserved, nowMs: number): Plan<SandboxStep> {
  const { workload } = observed;
  if (sandbox.deletedAt !== null)
    return { steps: workload ? [{ do: "destroy" }, { do: "retire" }] : [{ do: "retire" }] };
  const expiry = expiryOf(sandbox);
  if (expiry && expiry.atMs <= nowMs) return { steps: [{ do: "expire", why: `Its time was up: ${expiry.clock}.` }] };
  const expiresInMs = expiry ? expiry.atMs - nowMs : undefined;

  if (sandbox.spec.enabled === false) {
    const runs = workload !== null && workload.state !== "exited";
    if (sandbox.status === "DEACTIVATED" && !runs) return again(expiresInMs);
    return {
      steps: runs ? [{ do: "halt" }, { do: "deactivate" }] : [{ do: "deactivate" }],
      ...again(expiresInMs, false),
    };
  }
  const { upload, build } = sandbox.state;
  if (build) return observed.builds ? { steps: [], againMs: BUILD_LOOK_MS } : { steps: [{ do: "build" }] };
  if (upload) return upload.expiresAt > nowMs ? again(upload.expiresAt - nowMs) : { steps: [{ do: "late" }] };
  if (sandbox.state.restoring && sandbox.status === "DEPLOYING") {
    const create = { do: "create", why: `Restored from snapshot ${sandbox.state.fork?.snapshot}.` } as const;
    return { steps: workload ? [{ do: "destroy" }, create] : [create] };
  }
  // A failed sandbox stays failed until its spec changes.
  if (sandbox.status === "FAILED" && sandbox.observedGeneration === sandbox.generation) return again(expiresInMs);
  if (!workload)
    return {
      steps: [
        {
          do: "create",
          why:
            sandbox.status === "DEPLOYED"
              ? `The sandbox was gone from its machine (after \`berth down --purge\`, or with the machine's disk) and was started anew. ${keptAndLost(sandbox)}`
              : "Started.",
        },
      ],
      // With drive mounts to perform, the sandbox is observed again at once; otherwise when it may fall asleep.
      ...(mountsOf(sandbox).length > 0 ? {} : { settles: true, againMs: restMs(observed.standbyAfterMs, expiresInMs) }),
    };
  if (isAnother(sandbox, observed.wanted)) {
    const why = `The image, memory, environment, ports or volumes changed. ${keptAndLost(sandbox)}`;
    return { steps: [{ do: "destroy" }, { do: "create", why }] };
  }
  if (workload.state === "exited") return { steps: [{ do: "restart", why: restartedAfter(workload) }] };
  return alive(sandbox, observed, workload, nowMs, expiresInMs);
}

function alive(
  sandbox: Sandbox,
  observed: SandboxObserved,
  workload: Observed,
  nowMs: number,
  expiresInMs: number | undefined,
): Plan<SandboxStep> {
  const state = sandbox.state;
  if (state.resize) return { steps: [{ do: "resize" }] };
  if (workload.state === "frozen") {
    if ((state.wantedAt ?? 0) > (state.idleSince ?? 0)) return { steps: [{ do: "thaw" }] };
    if (!isRecorded(sandbox, workload, observed.wanted))
      return { steps: [{ do: "record" }], ...again(expiresInMs, false) };
    const sinksInMs = sinksNow(sandbox, workload) ? 0 : hibernatesInMs(sandbox, workload, nowMs);
    if (sinksInMs === 0) return { steps: [{ do: "hibernate" }], ...again(expiresInMs, false) };
    return again(sinksInMs === undefined ? expiresInMs : restMs(sinksInMs, expiresInMs));
  }
  if (!drivesAreAsWanted(mountsOf(sandbox), workload)) return { steps: [{ do: "drives" }] };
  if (observed.freezes && isPaused(sandbox)) return { steps: [{ do: "freeze" }] };
  const sleepsInMs = quietSince(sandbox, observed.lastRequestMs) + observed.standbyAfterMs - nowMs;
  if ((sleepsInMs <= 0 || isPressed(sandbox, observed.lastRequestMs)) && mayStandBy(observed))
    return { steps: [{ do: "freeze" }] };
  const steps: SandboxStep[] = isRecorded(sandbox, workload, observed.wanted) ? [] : [{ do: "record" }];
  if (!observed.freezes) return { steps, ...again(expiresInMs, false) };
  return { steps, againMs: restMs(sleepsInMs, expiresInMs) };
}

/** Whether a client's wish for sleep is newer than everything that woke the sandbox. */
export function isPaused(sandbox: Sandbox): boolean {
  const { pausedAt = 0, wantedAt = 0, idleSince = 0 } = sandbox.state;
  return pausedAt > wantedAt && pausedAt > idleSince;
}

/** Whether the sandbox was chosen to give its memory back and was not used since; see `pressure.ts`. */
export const isPressed = (sandbox: Sandbox, lastRequestMs: number): boolean =>
  (sandbox.state.pressedAt ?? 0) > quietSince(sandbox, lastRequestMs);

/** Whether the sleeping sandbox goes to disk before its time. An attempt that failed is not repeated at once. */
function sinksNow({ state }: Sandbox, { grade, hibernated }: Pick<Observed, "grade" | "hibernated">): boolean {
  const { pressedAt = 0, idleSince = 0, hibernateTriedAt = 0 } = state;
  return grade === "vm-like" && !hibernated && pressedAt > Math.max(idleSince, hibernateTriedAt);
}

/** Time until the sandbox may fall asleep or expires. */
const restMs = (sleepsInMs: number, expiresInMs = Number.POSITIVE_INFINITY): number =>
  Math.min(Math.max(sleepsInMs, LOOK_AGAIN_MIN_MS), expiresInMs);

/** When the sandbox was last used. */
export function quietSince(sandbox: Sandbox, lastRequestMs: number): number {
  const { idleSince = 0, wantedAt = 0 } = sandbox.state;
  return Math.max(lastRequestMs, idleSince, wantedAt);
}

/** Whether every mount request is settled and exactly the wanted drives are mounted. */
export function drivesAreAsWanted(wanted: readonly DriveMountIntent[], { mounts }: Pick<Observed, "mounts">): boolean {
  const there = new Set(mounts.flatMap(({ source, path, platform }) => ("drive" in source && !platform ? [path] : [])));
  const settled = wanted.filter(({ phase }) => phase === "mounted");
  return (
    wanted.every(({ phase }) => phase === "mounted" || phase === "failed") &&
    settled.length === there.size &&
    settled.every(({ mountPath }) => there.has(mountPath))
  );
}

const BUILD_LOOK_MS = 1000;

/** Shortest interval at which a busy sandbox is checked for sleep. */
const LOOK_AGAIN_MIN_MS = 1000;

function mayStandBy({ freezes, openRequests, inside }: SandboxObserved): boolean {
  if (!freezes || openRequests > 0 || !inside) return false;
  return inside.keepAlive === 0 && inside.awake === 0 && inside.terminalClients === 0 && inside.portConnections === 0;
}

function isRecorded(sandbox: Sandbox, workload: Observed, wanted: string): boolean {
  const { instances: [instance] = [], deployed } = sandbox.state;
  return (
    deployed === wanted &&
    sandbox.status === "DEPLOYED" &&
    sandbox.observedGeneration === sandbox.generation &&
    instance?.phase === workload.state
  );
}

/** The one instance of a sandbox, as the gateway reads it. */
export const instanceOf = (workload: Observed): Instance<Endpoint> => ({
  uid: workload.uid,
  revision: null,
  endpoint: workload.endpoint,
  phase: workload.state === "frozen" ? "frozen" : "running",
});

function again(afterMs: number | undefined): Plan<SandboxStep>;
function again(afterMs: number | undefined, steps: false): Pick<Plan<SandboxStep>, "againMs">;
function again(afterMs: number | undefined, steps = true): Plan<SandboxStep> | Pick<Plan<SandboxStep>, "againMs"> {
  return { ...(steps ? { steps: [] } : {}), ...(afterMs === undefined ? {} : { againMs: afterMs }) };
}
