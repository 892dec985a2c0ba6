/**
 * Kinds of pods that can wait for an owner. A pod's image, size and network are fixed when it is made, so sandboxes that
 * agree in these share a kind. Everything else of an owner reaches the daemon with the claim.
 */
import type { WorkloadSpec } from "../../../workload.ts";
import { digestOf } from "../objects/names.ts";
import type { PodGround } from "../objects/pod-body.ts";
import type { Order } from "../workload/order.ts";

export interface PoolKind {
  key: string;
  /** A workload of this kind, without anything of an owner. */
  spec: WorkloadSpec;
  image: string;
}

/** Host name of every pod of the pool: the cluster fixes it when the pod is made. */
const HOST = "sandbox";
/** Changes with what a server and the daemon of a waiting pod say to each other. */
const PROTOCOL = 1;

/** Null for a workload that needs a pod of its own: a command, another image than the base image, volumes. */
export function poolKindOf({ spec, image, ownUser, claims }: Order, ground: PodGround): PoolKind | null {
  const { limits, storageMb, network, loopbackNames = false, pull } = spec;
  const isSandbox = spec.exec === undefined && spec.workDir === undefined && claims.length === 0;
  // Processes have the image's own user in every image but the base image.
  const isBase = !ownUser && pull === undefined;
  if (!isSandbox || !isBase || limits.pids !== undefined) return null;
  const { memoryMb, cpus } = limits;
  const size = { limits: { memoryMb, cpus }, ...(storageMb === undefined ? {} : { storageMb }) };
  const bare = { name: HOST, image: spec.image, env: {}, network, loopbackNames, ...size };
  const key = digestOf(JSON.stringify([PROTOCOL, image, network, loopbackNames, memoryMb, cpus, storageMb, ground]));
  return { key, image, spec: { uid: "", ...bare } };
}
