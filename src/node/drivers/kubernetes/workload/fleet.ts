/**
 * All workloads of an installation: pods that carry its label. The API server is asked each time, so that any server can
 * act on any workload; the mirror says when to look again. Nothing about a pod is remembered here.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";
import { CONTROL, OUTPUT_SIZE_HEADER, type SandboxStats } from "../../../../contract/sandbox-wire.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import type { DestroyOptions } from "../../../driver.ts";
import type { Observed, Output, WorkloadSpec } from "../../../workload.ts";
import { askControl, callControl } from "../../common/control.ts";
import { listening } from "../../common/readiness.ts";
import type { KubeClient } from "../client/kube-client.ts";
import type { Mirror } from "../client/mirror.ts";
import { isRefusal, KubeRefusal } from "../client/refusal.ts";
import { type Pod, podSchema } from "../objects/answers.ts";
import { ANNOTATION, podName, selectorOf } from "../objects/names.ts";
import { CONTAINER, type PodGround, type PodOrder, podBody } from "../objects/pod-body.ts";
import { configOf, configSecret } from "./daemon.ts";
import { outputIn } from "./last-output.ts";
import { hasEnded, isHalted, isRunning, logNodeOf, observedOf } from "./observed.ts";
import { pullSecret, pullSecretName } from "./pull-secret.ts";
import { recordIn, type WorkloadRecord } from "./record.ts";
import { startProblem } from "./start-problem.ts";
import type { Tokens } from "./tokens.ts";

export interface FleetOptions {
  client: KubeClient;
  mirror: Mirror;
  namespace: string;
  node: string;
  ground: PodGround;
  tokens: Tokens;
  /** Where a new workload finds a server. */
  doors(): Promise<{ host: string; port: number }>;
}

/** A workload to be started, with what was looked up for it. */
export interface Order {
  spec: WorkloadSpec;
  image: string;
  ownUser: boolean;
  claims: PodOrder["claims"];
}

export interface Found {
  pod: Pod;
  record: WorkloadRecord;
}

/** Images are pulled and machines are added to a cluster in minutes. */
const START_WAIT_MS = 10 * 60_000;
/** Time after which a pod that never began to run belongs to no server any more. */
const ABANDONED_MS = 3 * START_WAIT_MS;
/** The mirror may be blind for a while: everything that waits looks again after this long. */
const LOOK_AGAIN_MS = 5_000;
/** Beside the grace of a workload: for the kubelet to tell that it has ended. */
const END_WAIT_MS = 60_000;
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

  async find(uid: string): Promise<Found | null> {
    const pod = await this.#options.client.find(podSchema, this.#pathOf(uid));
    const record = recordIn(pod);
    return pod && record?.uid === uid ? { pod, record } : null;
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
      return record && podName(ground.instance, record.uid) === pod.metadata.name ? [{ pod, record }] : [];
    });
  }

  /** Removes the pod of a sandbox that has ended: the next one starts from the image. */
  async clear(uid: string): Promise<void> {
    const found = await this.find(uid);
    if (found && !found.record.command && hasEnded(found.pod)) await this.remove(uid, 0);
  }

  /** Finds the pod that an earlier try made, where there is one: the name is the uid's. */
  async start(order: Order, signal?: AbortSignal): Promise<Observed> {
    const { spec } = order;
    let pod: Pod | null = null;
    try {
      pod = await this.#make(order, signal);
      return await this.#ready(spec, pod, signal);
    } catch (error) {
      await this.#forget(spec.uid, pod?.metadata.uid ?? null);
      throw error instanceof KubeRefusal ? refused(error) : error;
    }
  }

  async #make({ spec, image, ownUser, claims }: Order, signal?: AbortSignal): Promise<Pod> {
    const { client, ground, namespace, tokens } = this.#options;
    const record: WorkloadRecord = {
      uid: spec.uid,
      name: spec.name,
      id: randomBytes(6).toString("hex"),
      image: spec.image,
      mounts: spec.mounts ?? [],
      command: spec.exec !== undefined,
      ...(spec.limits.pids === undefined ? {} : { pids: spec.limits.pids }),
      ...(spec.log ? { log: spec.log } : {}),
    };
    const name = podName(ground.instance, spec.uid);
    const order = {
      name,
      node: this.#options.node,
      image,
      ownUser,
      limits: spec.limits,
      storageMb: spec.storageMb,
      workDir: spec.workDir,
      claims,
    };
    const doors = await this.#options.doors();
    for (;;) {
      const own = `${name}-${record.id}`;
      const body = podBody(ground, {
        ...{ ...order, record, secret: own, pullPolicy: spec.pull?.policy },
        pullSecret: spec.pull?.credentials && pullSecretName(own),
      });
      const { object: pod, made } = await client.create(podSchema, this.#path, body, { signal });
      const there = made ? record : recordIn(pod);
      if (there?.uid !== spec.uid) throw new PlatformError("conflict", `The pod ${name} is none of Berth's.`);
      if (pod.metadata.deletionTimestamp) {
        await this.#gone(spec.uid, pod.metadata.uid, END_WAIT_MS, signal);
        continue;
      }
      if (ground.userNamespaces && pod.spec.hostUsers !== false)
        throw new PlatformError("unprocessable", "This cluster has no user namespaces (it ignores hostUsers).");
      const secret = `${name}-${there.id}`;
      const config = configSecret(ground.instance, secret, pod, configOf(spec, there, { tokens, doors, ownUser }));
      // The kubelet waits for the configuration, which is a volume, and not for credentials: these come first.
      for (const body of [...pullSecrets(spec, ground, secret, pod), config])
        await client.put(`/api/v1/namespaces/${namespace}/secrets`, body, { signal });
      return pod;
    }
  }

  /** Waits until the daemon answers, or until a command has ended. */
  async #ready(spec: WorkloadSpec, { metadata }: Pod, signal?: AbortSignal): Promise<Observed> {
    const until = performance.now() + START_WAIT_MS;
    let troubleSince: number | null = null;
    for (;;) {
      signal?.throwIfAborted();
      const changed = this.#change(spec.uid, signal);
      const found = await this.find(spec.uid);
      if (!found || found.pod.metadata.uid !== metadata.uid || found.pod.metadata.deletionTimestamp)
        throw new PlatformError("unavailable", "The workload's pod was removed while it started. Try again.");
      const observed = this.observed(found);
      if (hasEnded(found.pod)) return await this.#endedEarly(found, observed);
      if (observed && observed.endpoint.kind === "tcp" && observed.endpoint.host !== "") {
        const enough = new AbortController();
        const ended = this.waitExit(spec.uid, { signal: enough.signal });
        try {
          if (await listening(observed.endpoint, ended, signal)) return observed;
        } finally {
          enough.abort();
          await ended.catch(() => {});
        }
        continue;
      }
      const now = performance.now();
      const trouble = startProblem(found.pod);
      troubleSince = trouble ? (troubleSince ?? now) : null;
      if (trouble && now >= (troubleSince ?? now) + trouble.waitMs) throw trouble.problem;
      if (now > until) throw new PlatformError("unavailable", "The workload's pod did not start in time. Try again.");
      await changed;
    }
  }

  /** A short command may end before its daemon was seen. */
  async #endedEarly(found: Found, observed: Observed | null): Promise<Observed> {
    const { reason, message } = found.pod.status ?? {};
    if (observed?.exitCode !== undefined) return observed;
    const said = reason ? `${reason}: ${message ?? ""}` : await this.#lastWords(found);
    throw new PlatformError("internal", `The workload's start failed: ${said}`);
  }

  async #lastWords({ pod }: Found): Promise<string> {
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
      const changed = this.#change(uid, signal);
      const found = await this.find(uid);
      if (!found || hasEnded(found.pod) || isHalted(found.pod)) return;
      await changed;
    }
  }

  /** Resolves at the next sign of a change, after a while, or with the signal. */
  async #change(uid: string, signal?: AbortSignal): Promise<void> {
    const { mirror, ground } = this.#options;
    const timer = new AbortController();
    const heard = Promise.withResolvers<void>();
    const off = mirror.onChange(podName(ground.instance, uid), heard.resolve);
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
      const changed = this.#change(uid);
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
    await this.#note(uid, { halted: "yes", frozen: null });
    await callControl(observed.endpoint, CONTROL.halt, { graceMs });
    await ended?.();
  }

  /** A sandbox that was halted runs again on its files. */
  async resume(uid: string): Promise<Observed | null> {
    await this.#note(uid, { halted: null });
    return this.observe(uid);
  }

  /** The note comes first and goes last: a server that ends in between leaves a workload that the next thaw mends. */
  async setFrozen(uid: string, frozen: boolean): Promise<Observed> {
    const { observed } = await this.living(uid);
    if (frozen) await this.#note(uid, { frozen: "yes" });
    try {
      await callControl(observed.endpoint, frozen ? CONTROL.freeze : CONTROL.thaw, {});
    } catch (error) {
      if (frozen) await this.#note(uid, { frozen: null });
      throw error;
    }
    if (!frozen) await this.#note(uid, { frozen: null });
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
      await client.edit(podSchema, this.#pathOf(record.uid), take);
    }
  }

  async #note(uid: string, notes: Partial<Record<"halted" | "frozen", "yes" | null>>): Promise<void> {
    const named = Object.entries(notes).map(([name, value]) => [ANNOTATION[name as "halted" | "frozen"], value]);
    const patch = { metadata: { annotations: Object.fromEntries(named) } };
    await this.#options.client.edit(podSchema, this.#pathOf(uid), () => patch);
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
    await this.#delete(pod, isOver ? 0 : Math.max(1, Math.ceil(graceMs / 1000)));
    await this.#gone(uid, pod.metadata.uid, graceMs + END_WAIT_MS);
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
      const changed = this.#change(uid, signal);
      const found = await this.find(uid);
      if (!found || hasEnded(found.pod)) return;
      await changed;
    }
  }

  async #delete({ metadata }: Pod, graceSeconds: number): Promise<void> {
    await this.#options.client.remove(`${this.#path}/${metadata.name}`, metadata.uid, graceSeconds);
  }

  /** Removes an unfinished start; `podUid` null: the pod of this start may be there all the same. */
  async #forget(uid: string, podUid: string | null): Promise<void> {
    const found = await this.find(uid).catch(() => null);
    if (!found || (podUid !== null && found.pod.metadata.uid !== podUid)) return;
    await this.#delete(found.pod, isRunning(found.pod) ? 1 : 0);
    await this.#gone(uid, found.pod.metadata.uid, END_WAIT_MS);
  }

  async #gone(uid: string, podUid: string, waitMs: number, signal?: AbortSignal): Promise<void> {
    const until = performance.now() + waitMs;
    for (;;) {
      signal?.throwIfAborted();
      const changed = this.#change(uid, signal);
      const found = await this.find(uid);
      if (found?.pod.metadata.uid !== podUid) return;
      if (performance.now() > until)
        throw new PlatformError(
          "unavailable",
          `The pod ${found.pod.metadata.name} does not end: its machine may be gone. It is removed when the machine is back.`,
        );
      await changed;
    }
  }

  /** Removes old pods that never began to run, and those of sandboxes that have ended: no server waits for them. */
  async sweep(nowMs: number): Promise<void> {
    for (const { pod, record } of await this.all()) {
      const isOld = nowMs - Date.parse(pod.metadata.creationTimestamp) > ABANDONED_MS;
      if (isOld && (hasEnded(pod) ? !record.command : !isRunning(pod))) await this.#delete(pod, 0);
    }
  }

  #pathOf(uid: string): string {
    return `${this.#path}/${podName(this.#options.ground.instance, uid)}`;
  }
}

const pullSecrets = ({ pull }: WorkloadSpec, { instance }: PodGround, secret: string, pod: Pod) =>
  pull?.credentials ? [pullSecret(instance, pullSecretName(secret), pod, pull.credentials)] : [];

const statsSchema = z.object({ memoryBytes: z.number(), cpuMs: z.number(), pids: z.number() });

function refused(error: KubeRefusal): PlatformError {
  const code = isRefusal(error, 400, 422) ? "unprocessable" : "unavailable";
  return new PlatformError(code, `Kubernetes refuses the workload: ${error.message}`, { cause: error });
}
