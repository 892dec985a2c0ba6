/** What to do with a sandbox, decided from its record and what was observed. Pure: every rule is a row of the test table. */

import { createHash } from "node:crypto";
import type { Instance, InstancesState } from "../../contract/instance.ts";
import type { SandboxActivity } from "../../contract/sandbox-wire.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import type { Observed } from "../../node/driver.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type DriveMountIntent, mountsOf } from "../drive/mounts.ts";
import type { Plan } from "../port.ts";
import { expiryOf } from "./expiry.ts";
import { keptAndLost } from "./kept-and-lost.ts";

export interface SandboxState extends InstancesState<Endpoint> {
  /** Fingerprint of what runs; a record with another one is deployed anew. */
  deployed?: string;
  /** When it last fell asleep, woke up or began. */
  idleSince?: number;
  compute?: "RUNNING" | "STANDBY";
  lastUsedAt?: number;
  isolation?: string;
  /** Limits that the machine does not hold for it. */
  unheld?: string[];
  driveMounts?: DriveMountIntent[];
}

export interface SandboxObserved {
  workload: Observed | null;
  openRequests: number;
  /** 0 when there was none since this server began. */
  lastRequestMs: number;
  /** What goes on inside; asked only when it may fall asleep. */
  inside: SandboxActivity | null;
  /** What should run, in short; see fingerprint. */
  wanted: string;
  /** How long without a request until it may sleep. */
  standbyAfterMs: number;
}

export type SandboxStep =
  | { do: "create"; why: string }
  | { do: "destroy" }
  | { do: "freeze" }
  | { do: "thaw" }
  | { do: "drives" }
  | { do: "expire"; why: string }
  | { do: "deactivate" }
  | { do: "retire" }
  | { do: "record" };

export const stateOf = (sandbox: Resource): SandboxState => sandbox.state as SandboxState;

/** Image, memory, variables and volumes make the machine; everything else changes in place, with the files kept. */
export function fingerprint({ spec }: Pick<Resource, "spec">, secrets: Record<string, string>): string {
  const { image, memory, envs } = (spec.runtime ?? {}) as Record<string, unknown>;
  const hidden = Object.entries(secrets).filter(([path]) => path.startsWith("/spec/runtime/"));
  const text = canonicalJson([image, memory, envs ?? [], spec.volumes ?? [], Object.fromEntries(hidden)]);
  return `${FORMULA}:${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
}

/** Counts the ways in which fingerprints were made; the first had no name. */
const FORMULA = "2";

const formulaOf = (made: string): string => /^(\d+):/.exec(made)?.[1] ?? "1";

/** A record of another version of the platform says the same in another way: without a new intent nothing changed. */
function isAnother({ generation, observedGeneration, state }: Resource, wanted: string): boolean {
  const { deployed = "" } = state as SandboxState;
  if (deployed === wanted) return false;
  return formulaOf(deployed) === formulaOf(wanted) || observedGeneration !== generation;
}

export function planSandbox(sandbox: Resource, observed: SandboxObserved, nowMs: number): Plan<SandboxStep> {
  const { workload } = observed;
  if (sandbox.deletedAt !== null)
    return { steps: workload ? [{ do: "destroy" }, { do: "retire" }] : [{ do: "retire" }] };
  const expiry = expiryOf(sandbox);
  if (expiry && expiry.atMs <= nowMs) return { steps: [{ do: "expire", why: `Its time was up: ${expiry.clock}.` }] };
  const expiresInMs = expiry ? expiry.atMs - nowMs : undefined;

  if (sandbox.spec.enabled === false) {
    if (sandbox.status === "DEACTIVATED" && !workload) return again(expiresInMs);
    return {
      steps: workload ? [{ do: "destroy" }, { do: "deactivate" }] : [{ do: "deactivate" }],
      ...again(expiresInMs, false),
    };
  }
  // A failure stands until the intent changes.
  if (sandbox.status === "FAILED" && sandbox.observedGeneration === sandbox.generation) return again(expiresInMs);
  if (!workload)
    return {
      steps: [
        {
          do: "create",
          why:
            sandbox.status === "DEPLOYED"
              ? `The sandbox was gone (after berth down, a crash, a kill or a restart of the machine) and was started anew. ${keptAndLost(sandbox)}`
              : "Started.",
        },
      ],
      // As of a running one that nobody uses; what is to be mounted beside its volumes is looked at right after.
      ...(mountsOf(sandbox).length > 0 ? {} : { settles: true, againMs: restMs(observed.standbyAfterMs, expiresInMs) }),
    };
  if (workload.state === "exited") {
    const end = workload.oom ? "ran out of memory" : "ended by itself";
    const why = `The sandbox ${end} and was started anew. ${keptAndLost(sandbox)}`;
    return { steps: [{ do: "destroy" }, { do: "create", why }] };
  }
  if (isAnother(sandbox, observed.wanted)) {
    const why = `The image, memory, environment or volumes changed. ${keptAndLost(sandbox)}`;
    return { steps: [{ do: "destroy" }, { do: "create", why }] };
  }
  return alive(sandbox, observed, workload, nowMs, expiresInMs);
}

function alive(
  sandbox: Resource,
  observed: SandboxObserved,
  workload: Observed,
  nowMs: number,
  expiresInMs: number | undefined,
): Plan<SandboxStep> {
  const state = stateOf(sandbox);
  if (workload.state === "frozen") {
    if ((state.wantedAt ?? 0) > (state.idleSince ?? 0)) return { steps: [{ do: "thaw" }] };
    return {
      steps: isRecorded(sandbox, workload, observed.wanted) ? [] : [{ do: "record" }],
      ...again(expiresInMs, false),
    };
  }
  if (!drivesAreAsWanted(mountsOf(sandbox), workload)) return { steps: [{ do: "drives" }] };
  const sleepsInMs = quietSince(sandbox, observed.lastRequestMs) + observed.standbyAfterMs - nowMs;
  if (sleepsInMs <= 0 && mayStandBy(observed)) return { steps: [{ do: "freeze" }] };
  const steps: SandboxStep[] = isRecorded(sandbox, workload, observed.wanted) ? [] : [{ do: "record" }];
  return { steps, againMs: restMs(sleepsInMs, expiresInMs) };
}

/** Until it may sleep or must end. */
const restMs = (sleepsInMs: number, expiresInMs = Number.POSITIVE_INFINITY): number =>
  Math.min(Math.max(sleepsInMs, LOOK_AGAIN_MIN_MS), expiresInMs);

/** Since when nobody has wanted anything of it. */
export function quietSince(sandbox: Resource, lastRequestMs: number): number {
  const { idleSince = 0, wantedAt = 0 } = stateOf(sandbox);
  return Math.max(lastRequestMs, idleSince, wantedAt);
}

/** What is mounted is what was asked for, and nothing that was asked for is open. */
export function drivesAreAsWanted(wanted: readonly DriveMountIntent[], { mounts }: Pick<Observed, "mounts">): boolean {
  const there = new Set(mounts.flatMap(({ source, path }) => ("drive" in source ? [path] : [])));
  const settled = wanted.filter(({ phase }) => phase === "mounted");
  return (
    wanted.every(({ phase }) => phase === "mounted" || phase === "failed") &&
    settled.length === there.size &&
    settled.every(({ mountPath }) => there.has(mountPath))
  );
}

/** A busy sandbox is asked again this soon whether it may sleep now. */
const LOOK_AGAIN_MIN_MS = 1000;

function mayStandBy({ openRequests, inside }: SandboxObserved): boolean {
  if (openRequests > 0 || !inside) return false;
  return inside.keepAlive === 0 && inside.awake === 0 && inside.terminalClients === 0 && inside.portConnections === 0;
}

function isRecorded(sandbox: Resource, workload: Observed, wanted: string): boolean {
  const { instances: [instance] = [], deployed } = stateOf(sandbox);
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
