/**
 * Pods made ahead of their owners. The pool is one for all servers of an installation: the pods that wait are those that
 * carry the pool's label, and a server claims one by taking the label away, which the API server lets one of them do. A
 * pod that was claimed never returns. Every server keeps the stock that it was asked for; a surplus of two servers that
 * filled the same gap goes again.
 *
 * A waiting pod takes its whole size from the cluster, so the pool gives way to a workload that finds no room.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { WorkloadSpec } from "../../../workload.ts";
import { listening } from "../../common/readiness.ts";
import { warmUp } from "../../common/warm-up.ts";
import type { KubeClient } from "../client/kube-client.ts";
import { isRefusal } from "../client/refusal.ts";
import { type Pod, podSchema } from "../objects/answers.ts";
import { ANNOTATION, hostWord, LABEL, ownLabels, poolPodName, selectorOf } from "../objects/names.ts";
import { type PodGround, podBody } from "../objects/pod-body.ts";
import { configSecret, waitingConfigOf } from "../workload/daemon.ts";
import { endpointOf, hasEnded, isRunning } from "../workload/observed.ts";
import { newId, recordOf } from "../workload/order.ts";
import type { WorkloadRecord } from "../workload/record.ts";
import { startProblem } from "../workload/start-problem.ts";
import type { Tokens } from "../workload/tokens.ts";
import { type Born, bornIn, bornName, isReady, kindKeyOf } from "./born.ts";
import { DEMAND_MS, Demand } from "./demand.ts";
import type { PoolKind } from "./pool-kind.ts";

export interface PodPoolOptions {
  client: KubeClient;
  namespace: string;
  node: string;
  ground: PodGround;
  tokens: Tokens;
  /** Pods of each kind that wait; 0: none are made, and none are claimed. */
  size: number;
  onTrouble?: ((error: unknown) => void) | undefined;
}

export interface Claimed {
  pod: Pod;
  record: WorkloadRecord;
}

const TEND_EVERY_MS = 30_000;
/** A kubelet pulls the base image in minutes, once for each machine. */
const MAKING_MAX_MS = 10 * 60_000;
const LOOK_MS = 250;
/** After the pool gave way, or a pod could not be made. */
const PAUSE_MS = 5 * 60_000;
/** Kubelets write to a pod as well, so a claim may miss its version without a rival. */
const CLAIM_TRIES = 5;
const STOP_WAIT_MS = 5_000;

export class PodPool {
  readonly #options: PodPoolOptions;
  readonly #path: string;
  readonly #demand = new Demand();
  readonly #end = new AbortController();
  #timer: NodeJS.Timeout | null = null;
  #tending: Promise<void> | null = null;
  #again = false;
  #pausedUntilMs = 0;

  constructor(options: PodPoolOptions) {
    this.#options = options;
    this.#path = `/api/v1/namespaces/${options.namespace}/pods`;
  }

  start(): void {
    if (this.#options.size > 0) this.#timer = setInterval(() => this.#tend(), TEND_EVERY_MS).unref();
  }

  /** Pods of one kind, or of all, that wait for an owner, the oldest first. */
  async waiting(key?: string): Promise<Pod[]> {
    const { client, ground } = this.#options;
    const labelSelector = `${selectorOf(ground.instance, "workload")},${LABEL.pool}${key === undefined ? "" : `=${key}`}`;
    const { items } = await client.list(podSchema, this.#path, { query: { labelSelector } });
    const order = ({ metadata }: Pod): string => `${metadata.creationTimestamp} ${metadata.name}`;
    return items
      .filter((pod) => bornIn(pod) !== null && !pod.metadata.deletionTimestamp)
      .sort((a, b) => (order(a) < order(b) ? -1 : 1));
  }

  /** A pod that from now on is this workload's, and whose daemon knows nothing of it yet. Null: none is ready. */
  async claim(kind: PoolKind, spec: WorkloadSpec): Promise<Claimed | null> {
    const { size } = this.#options;
    if (size === 0 || this.#end.signal.aborted) return null;
    this.#demand.ask(kind, Date.now());
    for (const pod of await this.waiting(kind.key)) {
      const claimed = isReady(pod) && isRunning(pod) ? await this.#claim(pod, spec) : null;
      if (claimed === null) continue;
      this.#tend();
      return claimed;
    }
    this.#tend();
    return null;
  }

  async #claim(waiting: Pod, spec: WorkloadSpec): Promise<Claimed | null> {
    const { client, node } = this.#options;
    const born = bornIn(waiting);
    if (!born) return null;
    const since = new Date().toISOString();
    const record = { ...recordOf(spec, born.id), born: bornName(waiting), since };
    const word = newId();
    const labels = { [LABEL.pool]: null, ...ownLabels(spec) };
    const annotations = {
      [ANNOTATION.record]: JSON.stringify(record),
      [ANNOTATION.logNode]: node,
      [ANNOTATION.claim]: word,
      [ANNOTATION.ready]: null,
    };
    const path = `${this.#path}/${waiting.metadata.name}`;
    const write = async ({ metadata: { resourceVersion } }: Pod): Promise<Pod | null> => {
      const body = { metadata: { resourceVersion, labels, annotations } };
      try {
        return await client.json(podSchema, "PATCH", path, { body, type: "application/merge-patch+json" });
      } catch (error) {
        if (!isRefusal(error, 404, 409)) throw error;
        return client.find(podSchema, path);
      }
    };
    let pod: Pod | null = waiting;
    for (let tries = 0; pod !== null && kindKeyOf(pod) !== undefined && tries < CLAIM_TRIES; tries += 1) {
      pod = await write(pod);
      // Also where the answer to an earlier try was lost.
      if (pod?.metadata.annotations?.[ANNOTATION.claim] === word) return { pod, record };
    }
    return null;
  }

  /** Gives the room of every waiting pod to a workload that found none. */
  async giveWay(): Promise<void> {
    if (this.#options.size === 0 || Date.now() < this.#pausedUntilMs) return;
    this.#pausedUntilMs = Date.now() + PAUSE_MS;
    for (const pod of await this.waiting()) await this.#remove(pod);
  }

  /** The pods that this server made end with it; those of other servers stay. */
  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    this.#end.abort(new Error("the server stops"));
    await this.#tending;
    if (this.#options.size === 0) return;
    const removing = this.#removeOwn().catch((error: unknown) => this.#options.onTrouble?.(error));
    await Promise.race([removing, delay(STOP_WAIT_MS, undefined, { ref: false })]);
  }

  /** A kubelet that writes to a pod meanwhile makes a further look necessary. */
  async #removeOwn(): Promise<void> {
    for (;;) {
      const own = (await this.waiting()).filter((pod) => bornIn(pod)?.node === this.#options.node);
      if (own.length === 0) return;
      for (const pod of own) await this.#remove(pod);
    }
  }

  /** One round at a time; a round that is asked for meanwhile comes after it. */
  #tend(): void {
    this.#again = true;
    this.#tending ??= this.#rounds().finally(() => {
      this.#tending = null;
    });
  }

  async #rounds(): Promise<void> {
    while (this.#again && !this.#end.signal.aborted) {
      this.#again = false;
      try {
        await this.#round();
      } catch (error) {
        if (this.#end.signal.aborted) return;
        this.#pausedUntilMs = Date.now() + PAUSE_MS;
        this.#options.onTrouble?.(error);
      }
    }
  }

  async #round(): Promise<void> {
    const nowMs = Date.now();
    const kinds = this.#demand.wanted(nowMs);
    const keys = new Set(kinds.map(({ key }) => key));
    const all = await this.waiting();
    for (const pod of all) if (this.#isStale(pod, keys, nowMs)) await this.#remove(pod);
    for (const kind of kinds) {
      const there = all.filter((pod) => kindKeyOf(pod) === kind.key && !this.#isStale(pod, keys, nowMs));
      // Two servers that filled the same gap agree on the surplus.
      for (const pod of there.slice(this.#options.size)) await this.#remove(pod);
      if (there.length >= this.#options.size || Date.now() < this.#pausedUntilMs) continue;
      await this.#make(kind);
      this.#again = true;
    }
  }

  #isStale(pod: Pod, keys: ReadonlySet<string>, nowMs: number): boolean {
    const ageMs = nowMs - Date.parse(pod.metadata.creationTimestamp);
    const isWanted = keys.has(kindKeyOf(pod) ?? "");
    return hasEnded(pod) || (!isReady(pod) && ageMs > MAKING_MAX_MS) || (!isWanted && ageMs > DEMAND_MS);
  }

  async #make(kind: PoolKind): Promise<void> {
    const { client, ground, namespace, node, tokens } = this.#options;
    const born: Born = { id: newId(), node };
    const name = poolPodName(ground.instance, born.id);
    const secret = `${name}-${born.id}`;
    const { limits, storageMb, name: host } = kind.spec;
    const body = podBody(ground, {
      ...{ name, secret, image: kind.image, ownUser: false, limits, storageMb, claims: [], host: hostWord(host) },
      labels: { [LABEL.pool]: kind.key, [LABEL.name]: hostWord(host) },
      annotations: { [ANNOTATION.born]: JSON.stringify(born) },
    });
    const { signal } = this.#end;
    const { object: pod } = await client.create(podSchema, this.#path, body, { signal });
    try {
      const waiting = { ...recordOf(kind.spec, born.id), born: bornName(pod) };
      const config = waitingConfigOf(kind.spec, waiting, { tokens, doors: { host: "", port: 0 }, ownUser: false });
      const secrets = `/api/v1/namespaces/${namespace}/secrets`;
      await client.put(secrets, configSecret(ground.instance, secret, pod, config), { signal });
      await this.#warm(pod, waiting);
      const ready = { metadata: { annotations: { [ANNOTATION.ready]: "yes" } } };
      await client.edit(podSchema, `${this.#path}/${name}`, () => ready, { signal });
    } catch (error) {
      const now = await client.find(podSchema, `${this.#path}/${name}`);
      if (now && kindKeyOf(now) !== undefined) await this.#remove(now);
      throw error;
    }
  }

  /** Waits for the daemon and lets it run its first commands. */
  async #warm({ metadata }: Pod, record: WorkloadRecord): Promise<void> {
    const { client } = this.#options;
    const { signal } = this.#end;
    const until = performance.now() + MAKING_MAX_MS;
    for (;;) {
      signal.throwIfAborted();
      const pod = await client.find(podSchema, `${this.#path}/${metadata.name}`, { signal });
      if (!pod || hasEnded(pod) || performance.now() > until) throw new Error("a pod of the pool did not start");
      const trouble = startProblem(pod);
      if (trouble) throw trouble.problem;
      if (isRunning(pod) && pod.status?.podIP) {
        const endpoint = endpointOf(pod, record, this.#options);
        await listening(endpoint, new Promise(() => {}), signal);
        await warmUp(endpoint);
        return;
      }
      await delay(LOOK_MS, undefined, { signal });
    }
  }

  /** A pod that is being claimed at this moment has another version and stays. */
  async #remove({ metadata }: Pod): Promise<void> {
    await this.#options.client.remove(`${this.#path}/${metadata.name}`, metadata, 0);
  }
}
