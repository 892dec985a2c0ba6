/** The machine of the test's cluster: runs the containers of pods as processes and tells how they are. */

import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiServer } from "./api-server.ts";
import { PodProcess } from "./pod-process.ts";
import type { KubeObject } from "./store.ts";

interface Container {
  name: string;
  image: string;
  imagePullPolicy?: string;
  command: string[];
  workingDir?: string;
  securityContext?: { runAsUser?: number };
  resources?: object;
  env?: { name: string; value?: string }[];
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
}

interface PodSpec {
  hostname: string;
  initContainers?: Container[];
  containers: Container[];
  imagePullSecrets?: { name: string }[];
  volumes?: {
    name: string;
    emptyDir?: object;
    secret?: { secretName: string };
    persistentVolumeClaim?: { claimName: string };
  }[];
}

/** Image names that this machine has; files beside the machine's own programs. */
export type KubeImages = Record<string, KubeImage>;

interface KubeImage {
  files: Record<string, string>;
  env: Record<string, string>;
  workDir?: string;
  /** `uid:gid` of the image's USER; default: root. */
  user?: string;
  /** `user:password` that the image's registry asks for. */
  login?: string;
}

interface Running {
  dir: string;
  address: string;
  process: PodProcess | null;
  stopping: boolean;
}

const LOCK_PORT = 8983;

export class Kubelet {
  readonly #api: ApiServer;
  readonly #images: KubeImages;
  /** Names of images that this machine has. */
  readonly #pulled = new Set<string>();
  readonly #dir = mkdtempSync(join(tmpdir(), "berth-kubelet-"));
  readonly #pods = new Map<string, Running>();
  readonly #off: () => void;
  #lock: Server | null = null;
  #subnet = "";
  #next = 1;
  readonly #free: string[] = [];
  #isStopped = false;
  /** Whether the machine has room for a pod; looked at again when another pod goes. */
  roomFor: (pod: KubeObject) => boolean = () => true;
  /** Why the machine does not change the limits of a pod that runs; null: the machine does. */
  resizeProblem: (pod: KubeObject) => "Deferred" | "Infeasible" | null = () => null;

  constructor(api: ApiServer, images: KubeImages) {
    this.#api = api;
    this.#images = images;
    api.logs = (pod) => {
      const running = this.#pods.get(pod.metadata.uid);
      const file = running?.process?.logFile;
      return file !== undefined && existsSync(file) ? readFileSync(file) : null;
    };
    this.#off = api.store.onEvent(({ resource, type, object }) => {
      if (resource === "pods") setImmediate(() => this.#look(type === "DELETED" ? null : object, object));
      if (resource === "pods" && type === "DELETED") setImmediate(() => this.#lookAll());
      if (resource === "secrets" && type === "ADDED") setImmediate(() => this.#lookAll());
    });
  }

  /** Takes a range of loopback addresses that no other test of this machine has. */
  async start(): Promise<void> {
    for (let n = process.pid; this.#lock === null; n += 1) {
      this.#subnet = `127.${64 + ((n >> 8) % 64)}.${n % 256}`;
      const lock = createServer();
      lock.listen(LOCK_PORT, `${this.#subnet}.254`);
      const outcome = await Promise.race([
        once(lock, "listening").then(() => lock),
        once(lock, "error").then(() => null),
      ]);
      this.#lock = outcome;
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#off();
    for (const { process } of this.#pods.values()) process?.signal("SIGKILL");
    await Promise.all([...this.#pods.values()].map(({ process }) => process?.ended));
    this.#lock?.close();
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 10 });
  }

  /** An image that registries have from now on. */
  addImage(name: string, image: KubeImage): void {
    this.#images[name] = image;
  }

  /** Ends a pod as a machine does that runs out of room. */
  evict(uid: string): void {
    const pod = this.#find(uid);
    const running = this.#pods.get(uid);
    if (!pod || !running) return;
    running.stopping = true;
    running.process?.signal("SIGKILL");
    this.#status(uid, { phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." });
  }

  /** Ends a pod as for a machine that is emptied: politely, with the pod's code told and the object still there. */
  async drain(uid: string): Promise<number | undefined> {
    const running = this.#pods.get(uid);
    const pod = this.#find(uid);
    if (!pod || !running?.process) return undefined;
    running.stopping = true;
    const metadata = { ...pod.metadata, deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 30 };
    this.#api.store.replace("pods", { ...pod, metadata });
    running.process.signal("SIGTERM");
    const { exitCode } = await running.process.ended;
    const state = { terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error" } };
    const phase = exitCode === 0 ? "Succeeded" : "Failed";
    this.#status(uid, { phase, podIP: running.address, containerStatuses: [{ name: "workload", state }] });
    return exitCode;
  }

  #find(uid: string): KubeObject | undefined {
    return this.#api.store.list("pods", NAMESPACE).find(({ metadata }) => metadata.uid === uid);
  }

  #lookAll(): void {
    for (const pod of this.#api.store.list("pods", NAMESPACE)) this.#look(pod, pod);
  }

  #look(pod: KubeObject | null, { metadata }: KubeObject): void {
    if (this.#isStopped) return;
    const running = this.#pods.get(metadata.uid);
    if (pod === null) this.#forget(metadata.uid);
    else if (metadata.deletionTimestamp !== undefined) void this.#end(pod);
    else if (running?.process) this.#resize(pod);
    else if (running === undefined) void this.#start(pod).catch((error: unknown) => this.#fail(metadata.uid, error));
  }

  /** Tells the limits that a container has, which are those of its specification unless the machine has no room. */
  #resize(pod: KubeObject): void {
    const { uid, generation } = pod.metadata;
    const [container] = (pod.spec as PodSpec).containers;
    const status = pod.status as { containerStatuses?: { name: string; state: object; resources?: object }[] };
    const [now] = status.containerStatuses ?? [];
    if (generation === undefined || !container || !now || !("running" in now.state)) return;
    const reason = this.resizeProblem(pod);
    const pending = { type: "PodResizePending", status: "True", reason, message: "Node didn't have enough capacity" };
    const isDone = reason === null;
    const resources = isDone ? container.resources : now.resources;
    this.#status(uid, {
      ...{ ...status, conditions: isDone ? [] : [{ ...pending, observedGeneration: generation }] },
      containerStatuses: [{ ...now, ...(resources ? { resources } : {}) }],
    });
  }

  #fail(uid: string, error: unknown): void {
    if (!this.#isStopped) this.#waiting(uid, "CreateContainerError", String(error));
  }

  async #start(pod: KubeObject): Promise<void> {
    const { uid } = pod.metadata;
    const spec = pod.spec as PodSpec;
    const [container] = spec.containers;
    if (!container) throw new Error("a pod without containers");
    const secrets = (spec.volumes ?? []).flatMap(({ secret }) => (secret ? [secret.secretName] : []));
    if (!secrets.every((name) => this.#api.store.get("secrets", NAMESPACE, name))) return; // the next look finds them
    if (!this.roomFor(pod)) {
      const message = "0/1 nodes are available: 1 Insufficient memory.";
      const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }];
      return this.#status(uid, { phase: "Pending", conditions });
    }
    for (const { image, imagePullPolicy } of [...(spec.initContainers ?? []), container]) {
      if (imagePullPolicy !== "Always" && this.#pulled.has(image)) continue;
      const problem = this.#pullProblem(image, spec);
      if (problem !== null) return this.#waiting(uid, "ErrImagePull", `failed to pull "${image}": ${problem}`);
      this.#pulled.add(image);
    }
    const dir = mkdtempSync(join(this.#dir, "pod-"));
    const address = this.#free.shift() ?? `${this.#subnet}.${this.#next++}`;
    const running: Running = { dir, address, process: null, stopping: false };
    this.#pods.set(uid, running);
    for (const init of spec.initContainers ?? []) {
      if (this.#isAlike(init, running)) continue;
      const { exitCode } = await this.#run(spec, init, running).ended;
      if (exitCode !== 0) return this.#waiting(uid, "CreateContainerError", `${init.name} ended with ${exitCode}`);
      this.#remember(init, running);
    }
    if (running.stopping || this.#isStopped || !this.#pods.has(uid)) return;
    running.process = this.#run(spec, container, running);
    this.#status(uid, {
      phase: "Running",
      podIP: address,
      containerStatuses: [{ name: container.name, state: { running: { startedAt: new Date().toISOString() } } }],
    });
    const { exitCode } = await running.process.ended;
    if (this.#isStopped || running.stopping) return;
    const reason = exitCode === 0 ? "Completed" : "Error";
    this.#status(uid, {
      phase: exitCode === 0 ? "Succeeded" : "Failed",
      podIP: address,
      containerStatuses: [{ name: container.name, state: { terminated: { exitCode, reason } } }],
    });
  }

  /** Offers the credentials whose key is the beginning of the image's name, as a kubelet does. */
  #pullProblem(image: string, { imagePullSecrets = [] }: PodSpec): string | null {
    const known = this.#images[image];
    if (!known) return "not found";
    if (known.login === undefined) return null;
    const offered = imagePullSecrets.flatMap(({ name }) => {
      const secret = this.#api.store.get("secrets", NAMESPACE, name);
      if (secret?.type !== "kubernetes.io/dockerconfigjson") return [];
      const text = Buffer.from((secret.data as Record<string, string>)[".dockerconfigjson"] ?? "", "base64");
      const { auths } = JSON.parse(text.toString()) as { auths: Record<string, { auth: string }> };
      return Object.entries(auths).flatMap(([key, { auth }]) => (image.startsWith(key) ? [auth] : []));
    });
    const isRight = offered.some((auth) => Buffer.from(auth, "base64").toString() === known.login);
    return isRight ? null : "401 Unauthorized";
  }

  #run(spec: PodSpec, container: Container, running: Running): PodProcess {
    const image = this.#images[container.image];
    const dir = join(running.dir, container.name);
    mkdirSync(dir);
    const env = Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value ?? running.address]));
    return new PodProcess({
      dir,
      files: image?.files ?? {},
      env: { HOSTNAME: spec.hostname, ...image?.env, ...env },
      command: container.command,
      hostname: spec.hostname,
      workingDir: container.workingDir ?? image?.workDir,
      user: container.securityContext?.runAsUser === undefined ? image?.user : undefined,
      mounts: (container.volumeMounts ?? []).map(({ name, mountPath, readOnly = false }) => ({
        from: this.#volume(spec, name, running),
        at: mountPath,
        readOnly,
      })),
    });
  }

  #volume(spec: PodSpec, name: string, running: Running): string {
    const volume = spec.volumes?.find((each) => each.name === name);
    const claim = volume?.persistentVolumeClaim?.claimName;
    const folder = claim === undefined ? join(running.dir, `volume-${name}`) : join(this.#dir, "claims", claim);
    mkdirSync(folder, { recursive: true });
    if (volume?.emptyDir) chmodSync(folder, 0o777);
    const secret = volume?.secret && this.#api.store.get("secrets", NAMESPACE, volume.secret.secretName);
    for (const [file, data] of Object.entries((secret?.data ?? {}) as Record<string, string>)) {
      // All pods have the machine's network: what a pod calls its own loopback is the pod's address here.
      const text = Buffer.from(data, "base64").toString("utf8").replaceAll('"127.0.0.1:', `"${running.address}:`);
      if (!existsSync(join(folder, file))) writeFileSync(join(folder, file), text, { mode: 0o400 });
    }
    return folder;
  }

  /** The daemon's executable has a hundred megabytes: it is copied once, by the init container, and linked afterwards. */
  #isAlike(init: Container, running: Running): boolean {
    const kept = join(this.#dir, "init", "sandboxd");
    if (!existsSync(kept) || !init.command.includes("install")) return false;
    mkdirSync(join(running.dir, "volume-bin"), { recursive: true });
    linkSync(kept, join(running.dir, "volume-bin", "sandboxd"));
    return true;
  }

  #remember(init: Container, running: Running): void {
    const made = join(running.dir, "volume-bin", "sandboxd");
    const kept = join(this.#dir, "init", "sandboxd");
    if (!init.command.includes("install") || existsSync(kept)) return;
    mkdirSync(join(this.#dir, "init"), { recursive: true });
    try {
      linkSync(made, kept);
    } catch {
      copyFileSync(made, kept);
    }
  }

  async #end(pod: KubeObject): Promise<void> {
    const { uid, deletionGracePeriodSeconds: seconds = 30 } = pod.metadata;
    const running = this.#pods.get(uid);
    if (running?.stopping) return;
    if (running) running.stopping = true;
    const process = running?.process;
    if (process) {
      process.signal("SIGTERM");
      const timer = setTimeout(() => process.signal("SIGKILL"), seconds * 1000);
      await process.ended;
      clearTimeout(timer);
    }
    const now = this.#find(uid);
    if (now) this.#api.store.remove("pods", now);
  }

  #forget(uid: string): void {
    const running = this.#pods.get(uid);
    if (!running) return;
    running.stopping = true;
    running.process?.signal("SIGKILL");
    void (running.process?.ended ?? Promise.resolve()).then(() => {
      this.#pods.delete(uid);
      this.#free.push(running.address);
      rmSync(running.dir, { recursive: true, force: true, maxRetries: 10 });
    });
  }

  #waiting(uid: string, reason: string, message: string): void {
    const name = "workload";
    this.#status(uid, { phase: "Pending", containerStatuses: [{ name, state: { waiting: { reason, message } } }] });
  }

  #status(uid: string, status: object): void {
    const pod = this.#find(uid);
    if (!pod || JSON.stringify(pod.status) === JSON.stringify(status)) return;
    this.#api.store.replace("pods", { ...pod, status });
  }
}

export const NAMESPACE = "berth-test";
