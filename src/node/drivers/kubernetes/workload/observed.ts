/** A pod as the platform sees it. */
import type { TcpEndpoint } from "../../../dial/endpoint.ts";
import type { Observed } from "../../../workload.ts";
import { PIDS_DEFAULT } from "../../../workload.ts";
import type { ContainerStatus, Pod } from "../objects/answers.ts";
import { ANNOTATION } from "../objects/names.ts";
import { CONTAINER } from "../objects/pod-body.ts";
import { amountOf } from "../objects/quantity.ts";
import { GATE_PORT } from "../settings.ts";
import type { WorkloadRecord } from "./record.ts";
import type { Tokens } from "./tokens.ts";

const MB = 2 ** 20;

export const statusOf = (pod: Pod): ContainerStatus["state"] =>
  pod.status?.containerStatuses?.find(({ name }) => name === CONTAINER)?.state;

/** Nothing of the pod runs any more, and nothing of it will. */
export const hasEnded = (pod: Pod): boolean =>
  Boolean(statusOf(pod)?.terminated) || ["Succeeded", "Failed"].includes(pod.status?.phase ?? "");

/** The platform ended the processes of a sandbox; its pod stays and keeps the files. */
export const isHalted = ({ metadata }: Pod): boolean => metadata.annotations?.[ANNOTATION.halted] === "yes";

export const isFrozen = ({ metadata }: Pod): boolean => metadata.annotations?.[ANNOTATION.frozen] === "yes";

/** The pod's first process runs, also in a sandbox that was halted. */
export const isRunning = (pod: Pod): boolean => !hasEnded(pod) && Boolean(statusOf(pod)?.running);

/** The pod was taken from the pool, and its daemon may not have the owner's configuration yet. */
export const isBeingClaimed = ({ metadata }: Pod): boolean => metadata.annotations?.[ANNOTATION.claim] !== undefined;

export const logNodeOf = ({ metadata }: Pick<Pod, "metadata">): string | undefined =>
  metadata.annotations?.[ANNOTATION.logNode];

/** The cluster took the pod: its machine is drained, full or gone, or a person removed the pod. */
const isTaken = ({ metadata, status }: Pod): boolean =>
  Boolean(metadata.deletionTimestamp) ||
  TAKEN.has(status?.reason ?? "") ||
  (status?.conditions ?? []).some(({ type, status: is }) => type === "DisruptionTarget" && is === "True");

const TAKEN = new Set(["Evicted", "Preempting", "Shutdown", "NodeShutdown", "Terminated", "NodeLost", "NodeAffinity"]);

function endedBy(pod: Pod): Pick<Observed, "endedBy"> {
  if (isHalted(pod)) return { endedBy: "platform" };
  return hasEnded(pod) && isTaken(pod) ? { endedBy: "machine" } : {};
}

export interface ObservedGround {
  node: string;
  tokens: Tokens;
}

export const endpointOf = (pod: Pod, record: WorkloadRecord, { node, tokens }: ObservedGround): TcpEndpoint => ({
  ...{ kind: "tcp", node, port: GATE_PORT },
  ...{ host: pod.status?.podIP ?? "", token: tokens.gateOf(record) },
});

/** Null for a pod that has not begun to run or is being claimed, and for a sandbox whose pod has ended: its files are gone with the pod. */
export function observedOf(pod: Pod, record: WorkloadRecord, ground: ObservedGround): Observed | null {
  const { node } = ground;
  if (isBeingClaimed(pod) || (hasEnded(pod) ? !record.command : !isRunning(pod))) return null;
  const ended = hasEnded(pod) || isHalted(pod);
  const terminated = statusOf(pod)?.terminated;
  const { limits } = pod.spec.containers.find(({ name }) => name === CONTAINER)?.resources ?? {};
  const { pids = PIDS_DEFAULT } = record;
  return {
    uid: record.uid,
    node,
    state: ended ? "exited" : isFrozen(pod) ? "frozen" : "running",
    grade: pod.spec.hostUsers === false ? "mapped" : "contained",
    endpoint: endpointOf(pod, record, ground),
    ...(terminated ? { exitCode: terminated.exitCode } : {}),
    limits: {
      memoryMb: amountOf(limits?.memory ?? "0") / MB,
      cpus: amountOf(limits?.cpu ?? "0"),
      ...(pids === PIDS_DEFAULT ? {} : { pids }),
    },
    mounts: record.mounts,
    createdAt: new Date(record.since ?? pod.metadata.creationTimestamp).toISOString(),
    pooled: record.born !== undefined,
    oom: terminated?.reason === "OOMKilled",
    ...endedBy(pod),
    // Another server keeps the log otherwise: two would store every line twice.
    ...(record.log && logNodeOf(pod) === node ? { log: record.log } : {}),
  };
}
