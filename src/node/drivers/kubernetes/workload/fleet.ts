/**
 * All workloads of an installation: pods that carry its label. The API server is asked each time, so that any server can
 * act on any workload; the mirror says when to look again. Nothing about a pod is remembered here.
 */
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";
import { CONTROL, OUTPUT_SIZE_HEADER, type SandboxStats } from "../../../../contract/sandbox-wire.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import type { DestroyOptions } from "../../../driver.ts";
import type { Observed, Output } from "../../../workload.ts";
import { askControl, callControl } from "../../common/control.ts";
import type { KubeClient } from "../client/kube-client.ts";
import type { Mirror } from "../client/mirror.ts";
import { KubeRefusal } from "../client/refusal.ts";
import { type Pod, podSchema } from "../objects/answers.ts";
import { ANNOTATION, digestOf, LABEL, podName, selectorOf } from "../objects/names.ts";
import { CONTAINER, type PodGround } from "../objects/pod-body.ts";
import { outputIn } from "./last-output.ts";
import { hasEnded, isHalted, isRunning, logNodeOf, observedOf } from "./observed.ts";
import { recordIn, type WorkloadRecord } from "./record.ts";
import type { Tokens } from "./tokens.ts";

export interface FleetOptions {
  client: KubeClient;
  mirror: Mirror;
  namespace: string;
  node: string;
  ground: PodGround;
  tokens: Tokens;
}

export interface Found {
  pod: Pod;
  record: WorkloadRecord;
}

/** Images are pulled and machines are added to a cluster in minutes. */
export const START_WAIT_MS = 10 * 60_000;
/** Time after which a pod that never began to run belongs to no server any more. */
const ABANDONED_MS = 3 * START_WAIT_MS;
/** The mirror may be blind for a while: everything that waits looks again after this long. */
const LOOK_AGAIN_MS = 5_000;
/** Beside the grace of a workload: for the kubelet to tell that it has ended. */
export const END_WAIT_MS = 60_000;
/** For a daemon that does not answer the request to end. */
const SILENT_END_WAIT_MS = 2_000;
/** A container's log is kept up to some ten megabytes. */
const LOG_BYTES_MAX = 32 * 1024 ** 2;
const LAST_WORDS_CHARS = 500;
const PROLONG_TRIES = 3;

export class Fleet {
  readonly #options: FleetOptions;
  readonly #path: string;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#path = `/api/v1/namespaces/${options.namespace}/pods`;
  }

  /** The mirror's hint and the name of a pod that was made for the workload come before a look at all labels. */
  async find(uid: string): Promise<Found | null> {
    const { client, mirror, ground } = this.#options;
    for (const name of new Set([mirror.nameOf(digestOf(uid)), podName(ground.instance, uid)])) {
      const pod = name === undefined ? null : await client.find(podSchema, `${this.#path}/${name}`);
      const record = recordIn(pod);
      if (pod && record?.uid === uid) return { pod, record };
    }
    return (await this.labelled(uid))[0] ?? null;
  }

  /** Every pod that carries the workload's label: more than one while two servers start the workload. */
  async labelled(uid: string): Promise<Found[]> {
    const { client, ground } = this.#options;
    const query = { labelSelector: `${selectorOf(ground.instance, "workload")},${LABEL.uid}=${digestOf(uid)}` };
    const { items } = await client.list(podSchema, this.#path, { query });
    return items.flatMap((pod) => {
      const record = recordIn(pod);
      return record?.uid === uid ? [{ pod, record }] : [];
    });
  }

  async known(uid: string): Promise<Found> {
    const found = await this.find(uid);
    if (!found) throw new PlatformError("not_found", `There is no workload ${uid} in this cluster.`);
    return found;
  }

  /** A workload that has not ended. */
  async living(uid: string): Promise<Found & { observed: Observed }> {
    const found = await this.known(uid);
    const observed = this.observed(found);
    if (!observed || observed.state === "exited") throw new PlatformError("conflict", "The workload has ended.");
    return { ...found, observed };
  }

  observed({ pod, record }: Found): Observed | null {
    return observedOf(pod, record, this.#options);
  }

  async observe(uid: string): Promise<Observed | null> {
    const found = await this.find(uid);
    return found && this.observed(found);
  }

  /** Every pod of the installation, also those that are still starting. */
  async all(): Promise<Found[]> {
    const { client, ground } = this.#options;
    const query = { labelSelector: selectorOf(ground.instance, "workload") };
    const { items } = await client.list(podSchema, this.#path, { query });
    return items.flatMap((pod) => {
      const record = recordIn(pod);
      if (!record) return [];
      const { name, labels } = pod.metadata;
      const isOwn = name === podName(ground.instance, record.uid) || labels?.[LABEL.uid] === digestOf(record.uid);
      return isOwn ? [{ pod, record }] : [];
    });
  }

  /** Removes the pod of a sandbox that has ended: the next one starts from the image. */
  async clear({ pod, record }: Found): Promise<void> {
    if (!record.command && hasEnded(pod)) await this.remove(record.uid, 0);
  }

  async lastWords({ pod }: Found): Promise<string> {
    const text = await this.#log(pod).catch(() => "");
    return text.trim() === "" ? "it ended without a word" : text.trim().slice(-LAST_WORDS_CHARS);
  }

  async #log({ metadata }: Pod): Promise<string> {
    const query = { container: CONTAINER, limitBytes: LOG_BYTES_MAX };
    const path = `${this.#path}/${metadata.name}/log`;
    return (await this.#options.client.bytes("GET", path, LOG_BYTES_MAX, { query })).toString("utf8");
  }

  /** Resolves when the workload has ended or is gone. */
  async waitExit(uid: string, { signal }: CallOptions = {}): Promise<void> {
    for (;;) {
      signal?.throwIfAborted();
      const changed = this.change(uid, signal);
      const found = await this.find(uid);
      if (!found || hasEnded(found.pod) || isHalted(found.pod)) return;
      await changed;
    }
  }

  /** Resolves at the next sign of a change, after a while, or with the signal. */
  async change(uid: string, signal?: AbortSignal): Promise<void> {
    const { mirror } = this.#options;
    const timer = new AbortController();
    const heard = Promise.withResolvers<void>();
    const off = mirror.onChange(digestOf(uid), heard.resolve);
    const end = signal ? AbortSignal.any([signal, timer.signal]) : timer.signal;
    await Promise.race([heard.promise, delay(LOOK_AGAIN_MS, undefined, { signal: end }).catch(() => {})]);
    timer.abort();
    off();
  }

  async readOutput(uid: string, stream: "stdout" | "stderr", offset: number, bytesMax: number): Promise<Output> {
    const found = await this.known(uid);
    const observed = this.observed(found);
    if (observed && isRunning(found.pod)) {
      const path = `${CONTROL.output}${stream}?offset=${offset}&bytes=${bytesMax}`;
      try {
        const { bytes, headers } = await askControl(observed.endpoint, path, undefined, bytesMax);
        return { bytes, size: Number(headers[OUTPUT_SIZE_HEADER] ?? 0) };
      } catch (error) {
        const now = await this.known(uid);
        if (!hasEnded(now.pod)) throw error;
      }
    }
    // A pod that was evicted has no log any more.
    const log = await this.#log(found.pod).catch((error: unknown) => {
      if (error instanceof KubeRefusal) return "";
      throw error;
    });
    return outputIn(log, stream, offset, bytesMax);
  }

  async stats(uid: string): Promise<SandboxStats> {
    const { observed } = await this.living(uid);
    return statsSchema.parse(await callControl(observed.endpoint, CONTROL.stats, undefined));
  }

  async prolong(uid: string, endsAtMs: number): Promise<void> {
    for (let left = PROLONG_TRIES; ; left -= 1) {
      const changed = this.change(uid);
      const observed = await this.observe(uid);
      if (!observed || observed.state === "exited") return;
      try {
        return void (await callControl(observed.endpoint, CONTROL.endsAt, { endsAtMs }));
      } catch (error) {
        if (left === 1) throw error;
      }
      await changed; // the workload may have ended meanwhile, which the cluster tells a little later
    }
  }

  /** Ends the processes of a sandbox, whose pod stays with the files. Of a command nothing is kept. */
  async halt(uid: string, graceMs: number, ended?: DestroyOptions["ended"]): Promise<void> {
    const found = await this.find(uid);
    if (!found || isHalted(found.pod)) return;
    const observed = this.observed(found);
    if (found.record.command || !observed) return this.remove(uid, graceMs, ended);
    await this.#note(found, { halted: "yes", frozen: null });
    await callControl(observed.endpoint, CONTROL.halt, { graceMs });
    await ended?.();
  }

  /** A sandbox that was halted runs again on its files. */
  async resume(found: Found): Promise<Observed | null> {
    await this.#note(found, { halted: null });
    return this.observe(found.record.uid);
  }

  /** The note comes first and goes last: a server that ends in between leaves a workload that the next thaw mends. */
  async setFrozen(uid: string, frozen: boolean): Promise<Observed> {
    const found = await this.living(uid);
    const { observed } = found;
    if (frozen) await this.#note(found, { frozen: "yes" });
    try {
      await callControl(observed.endpoint, frozen ? CONTROL.freeze : CONTROL.thaw, {});
    } catch (error) {
      if (frozen) await this.#note(found, { frozen: null });
      throw error;
    }
    if (!frozen) await this.#note(found, { frozen: null });
    return (await this.living(uid)).observed;
  }

  /** Takes over the logs of servers that are gone; of several servers that try, one succeeds. */
  async takeLogs(isLive: (node: string) => boolean): Promise<void> {
    const { client, node } = this.#options;
    for (const { pod, record } of await this.all()) {
      const keeper = logNodeOf(pod);
      if (!record.log || keeper === node || (keeper !== undefined && isLive(keeper))) continue;
      const patch = { metadata: { annotations: { [ANNOTATION.logNode]: node } } };
      const take = (now: Pod) => (logNodeOf(now) === keeper ? patch : null);
      await client.edit(podSchema, `${this.#path}/${pod.metadata.name}`, take);
    }
  }

  async #note({ pod }: Found, notes: Partial<Record<"halted" | "frozen", "yes" | null>>): Promise<void> {
    const named = Object.entries(notes).map(([name, value]) => [ANNOTATION[name as "halted" | "frozen"], value]);
    const patch = { metadata: { annotations: Object.fromEntries(named) } };
    await this.#options.client.edit(podSchema, `${this.#path}/${pod.metadata.name}`, () => patch);
  }

  /** The daemon ends everything first, so that the last output can still be read; then the pod goes. */
  async remove(uid: string, graceMs: number, ended?: DestroyOptions["ended"]): Promise<void> {
    const found = await this.find(uid);
    if (!found) return;
    const { pod } = found;
    if (isRunning(pod)) await this.#end(found, graceMs);
    const now = await this.find(uid);
    const isOver = now === null || hasEnded(now.pod);
    if (isOver) await ended?.();
    await this.delete(pod, isOver ? 0 : Math.max(1, Math.ceil(graceMs / 1000)));
    await this.gone(uid, pod, graceMs + END_WAIT_MS);
    if (!isOver) await ended?.();
  }

  async #end(found: Found, graceMs: number): Promise<void> {
    const observed = this.observed(found);
    if (!observed) return;
    const asked = await callControl(observed.endpoint, CONTROL.end, { graceMs }).then(
      () => true,
      () => false, // the answer may be lost with the daemon that gave it
    );
    const patience = AbortSignal.timeout(asked ? graceMs + END_WAIT_MS : SILENT_END_WAIT_MS);
    await this.#containerEnd(found.record.uid, patience).catch((error: unknown) => {
      if (!patience.aborted) throw error;
    });
  }

  async #containerEnd(uid: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const changed = this.change(uid, signal);
      const found = await this.find(uid);
      if (!found || hasEnded(found.pod)) return;
      await changed;
    }
  }

  async delete({ metadata }: Pod, graceSeconds: number): Promise<void> {
    const { name, uid } = metadata;
    await this.#options.client.remove(`${this.#path}/${name}`, { uid }, graceSeconds);
  }

  async gone(uid: string, { metadata }: Pod, waitMs: number, signal?: AbortSignal): Promise<void> {
    const until = performance.now() + waitMs;
    const path = `${this.#path}/${metadata.name}`;
    for (;;) {
      signal?.throwIfAborted();
      const changed = this.change(uid, signal);
      const pod = await this.#options.client.find(podSchema, path);
      if (pod?.metadata.uid !== metadata.uid) return;
      if (performance.now() > until)
        throw new PlatformError(
          "unavailable",
          `The pod ${metadata.name} does not end: its machine may be gone. It is removed when the machine is back.`,
        );
      await changed;
    }
  }

  /** Removes old pods that never began to run, and those of sandboxes that have ended: no server waits for them. */
  async sweep(nowMs: number): Promise<void> {
    for (const { pod, record } of await this.all()) {
      const isOld = nowMs - Date.parse(pod.metadata.creationTimestamp) > ABANDONED_MS;
      if (isOld && (hasEnded(pod) ? !record.command : !isRunning(pod))) await this.delete(pod, 0);
    }
  }
}

const statsSchema = z.object({ memoryBytes: z.number(), cpuMs: z.number(), pids: z.number() });
