/**
 * Workloads as pods of a Kubernetes cluster, with the same daemon inside as everywhere. The cluster schedules, pulls and
 * isolates; the driver asks for pods and talks to their daemons through the gate of each. Every server of an installation
 * can act on every workload. See docs/decisions/kubernetes-own-client.md.
 */
import { randomBytes } from "node:crypto";
import { lookup } from "node:dns/promises";
import type { Socket } from "node:net";
import { hostname } from "node:os";
import { PlatformError } from "../../../contract/errors.ts";
import { chooseGrade } from "../../../contract/isolation.ts";
import type { Capabilities, CapabilityName } from "../../capabilities/capabilities.ts";
import type { CallOptions } from "../../dial/endpoint.ts";
import type { DestroyOptions, Driver, OnStop, Probe } from "../../driver.ts";
import { type EgressOptions, type EgressProxy, startEgressProxy } from "../../egress/egress-proxy.ts";
import { baseEnv, isBaseImage } from "../../images/base-names.ts";
import type { CommandOf } from "../../images/image-command.ts";
import type { Grade, Observed, Output, Stats, WorkloadSpec } from "../../workload.ts";
import { Serial } from "../common/serial.ts";
import { checkSpec } from "../common/spec-check.ts";
import { openAccount } from "./client/account.ts";
import { KubeClient } from "./client/kube-client.ts";
import { Mirror } from "./client/mirror.ts";
import { podKeyOf, selectorOf } from "./objects/names.ts";
import { applyPolicy } from "./objects/policy.ts";
import { PodPool } from "./pool/pod-pool.ts";
import { DOOR_PORT_DEFAULT, INSTANCE_DEFAULT, type KubeSettings, parseDoors } from "./settings.ts";
import { sendFiles } from "./storage/send-files.ts";
import { KubeVolumes } from "./storage/volumes.ts";
import { Doors } from "./workload/doors.ts";
import { Fleet, type Found } from "./workload/fleet.ts";
import { Lives } from "./workload/lives.ts";
import { canResize, KubeResizing } from "./workload/resizing.ts";
import { Starts } from "./workload/starts.ts";
import { openTokens, type Tokens } from "./workload/tokens.ts";

export interface KubernetesDriverOptions extends KubeSettings {
  /** The part before the slash in names of the base image. */
  brand: string;
  /** Name of this server's machine. Default: its host name. */
  node?: string;
  /** Handles a connection that a workload made to the platform. Default: hang up. */
  onPlatform?: (uid: string, socket: Socket) => void;
  /** Rules and metering of outgoing traffic. */
  egress?: EgressOptions;
  onWarning?: (message: string, fields: Record<string, unknown>) => void;
  /** The command that an image names. */
  commandOf?: CommandOf;
  /** Whether another server was heard of lately. Default: yes. */
  isLive?: (node: string) => boolean;
}

interface Parts {
  options: KubernetesDriverOptions;
  client: KubeClient;
  namespace: string;
  instance: string;
  image: string;
  tokens: Tokens;
}

const NAMESPACE_DEFAULT = "default";
const WORD = /^[a-z]([-a-z0-9]{0,18}[a-z0-9])?$/;
/** Where a volume is mounted while it is filled. */
const FILL_AT = "/volume";
const SWEEP_EVERY_MS = 10 * 60_000;
const LOGS_EVERY_MS = 30_000;
const FILL_LIMITS = { memoryMb: 256, cpus: 0.5 };

export async function openKubernetesDriver(options: KubernetesDriverOptions): Promise<KubernetesDriver> {
  const { instance = INSTANCE_DEFAULT, image, doors, doorPort = DOOR_PORT_DEFAULT, serverCidr } = options;
  if (image === undefined)
    throw needed("kube_image (BERTH_KUBE_IMAGE)", "the image of Berth, whose daemon goes into pods");
  if (doors === undefined || parseDoors(doors) === null)
    throw needed("kube_doors (BERTH_KUBE_DOORS)", "HOST:PORT, by which pods reach this server");
  if (!WORD.test(instance))
    throw new PlatformError("unavailable", "kube_instance is a word of at most 20 letters, digits and hyphens.");
  const { client, namespace, serverNamespace } = openClient(options);
  try {
    const tokens = await openTokens(client, namespace, instance);
    await applyPolicy({ client, namespace, serverNamespace, instance, doorPort, serverCidr });
    const driver = new KubernetesDriver({ options, client, namespace, instance, image, tokens });
    await driver.takeOver();
    return driver;
  } catch (error) {
    await client.close();
    throw error;
  }
}

export interface OpenClient {
  client: KubeClient;
  /** Namespace of workloads. */
  namespace: string;
  /** Namespace of servers: that of their service account, where they are pods. */
  serverNamespace: string;
}

export function openClient(settings: KubeSettings): OpenClient {
  const { kubeconfig, apiHost: host, apiPort: port } = settings;
  const account = openAccount({ kubeconfig, host, port });
  const namespace = settings.namespace ?? account.namespace ?? NAMESPACE_DEFAULT;
  const serverNamespace = kubeconfig === undefined ? (account.namespace ?? namespace) : namespace;
  return { client: new KubeClient({ account }), namespace, serverNamespace };
}

const needed = (setting: string, what: string): PlatformError =>
  new PlatformError("unavailable", `Driver kubernetes needs the setting ${setting}: ${what}.`);

const gradeOf = (userNamespaces: boolean): Grade => (userNamespaces ? "mapped" : "contained");

export const probeOf = ({ userNamespaces = false }: KubeSettings): Probe => ({
  grade: gradeOf(userNamespaces),
  grades: [gradeOf(userNamespaces)],
  missing: [
    ...(userNamespaces
      ? []
      : ["Root inside a pod is root on its machine, with few capabilities (kube_user_namespaces is off)."]),
    "Whether the cluster's network enforces network policies cannot be seen from here.",
    "The number of processes is limited by the cluster's machines alone.",
    "A pod that writes more to its machine than its storage is evicted, a moment later.",
    "The size of a volume holds where the storage class enforces it.",
    "Workloads have no network of their own: outbound goes through the platform's proxy.",
  ],
  seccomp: true,
  limits: ["memory", "cpu"],
  freezer: "signal",
  outbound: "proxy",
  volumes: "unsized",
  roots: "unsized",
});

export class KubernetesDriver implements Driver {
  readonly name = "kubernetes";
  readonly node: string;
  /**
   * The others are not declared: the cluster keeps images, and copies no files of a running pod. Resizing is there where
   * the version of the cluster has it.
   */
  readonly capabilities: Pick<Capabilities, "volumes" | "freezing" | "resizing">;
  readonly #parts: Parts;
  readonly #fleet: Fleet;
  readonly #mirror: Mirror;
  readonly #pool: PodPool;
  readonly #starts: Starts;
  readonly #volumes: KubeVolumes;
  readonly #doors: Doors;
  readonly #egress: EgressProxy;
  readonly #creating = new Map<string, Promise<Observed>>();
  readonly #serial = new Serial();
  #canResize: Promise<boolean> | null = null;
  #stopped = false;
  #timers: NodeJS.Timeout[] = [];

  constructor(parts: Parts) {
    const { options, client, namespace, instance, image, tokens } = parts;
    this.#parts = parts;
    this.node = options.node ?? hostname();
    this.#egress = startEgressProxy(options.egress);
    this.#mirror = new Mirror({
      client,
      path: `/api/v1/namespaces/${namespace}/pods`,
      labelSelector: selectorOf(instance, "workload"),
      keyOf: (metadata) => podKeyOf(instance, metadata),
      onTrouble: (error) => options.onWarning?.("the watch of pods has trouble and goes on", { err: error }),
    });
    const { runtimeClass, pullSecrets = [], userNamespaces = false } = options;
    const ground = { instance, image, runtimeClass, pullSecrets, userNamespaces };
    const common = { client, namespace, node: this.node, tokens, ground };
    this.#fleet = new Fleet({ ...common, mirror: this.#mirror });
    this.#pool = new PodPool({
      ...common,
      size: options.poolSize ?? 0,
      onTrouble: (error) => options.onWarning?.("no pod could be made for the pool", { err: error }),
    });
    this.#starts = new Starts({
      ...{ ...common, fleet: this.#fleet, pool: this.#pool },
      doors: () => doorsOf(options.doors ?? ""),
    });
    this.#doors = new Doors({
      port: options.doorPort ?? DOOR_PORT_DEFAULT,
      tokens,
      lives: new Lives({ fleet: this.#fleet, mirror: this.#mirror }),
      onDoor: {
        platform: options.onPlatform ?? ((_, socket) => void socket.destroy()),
        egress: (uid, socket) => this.#egress.serve(uid, socket),
      },
    });
    this.#volumes = new KubeVolumes({
      ...{ client, namespace, instance, storageClass: options.storageClass },
      isThere: async (uid) => this.#creating.has(uid) || (await this.#fleet.find(uid)) !== null,
      fill: (volume, from) => this.#fill(volume, from),
    });
    this.capabilities = {
      volumes: this.#volumes,
      resizing: new KubeResizing({ client, namespace, fleet: this.#fleet, serial: this.#serial }),
      // The daemon stops the processes: they use no processor time; memory and the pod's requests stay taken.
      freezing: {
        freeze: (uid) => this.#serial.run(uid, () => this.#fleet.setFrozen(uid, true)),
        thaw: (uid) => this.#serial.run(uid, () => this.#fleet.setFrozen(uid, false)),
      },
    };
  }

  async capability<Name extends CapabilityName>(name: Name): Promise<Capabilities[Name] | null> {
    const all: Partial<Capabilities> = this.capabilities;
    if (name === "resizing" && !(await this.#resizes())) return null;
    return all[name] ?? null;
  }

  /** Asked once: an API server that does not answer is asked again by the next caller. */
  #resizes(): Promise<boolean> {
    this.#canResize ??= canResize(this.#parts.client).catch((error: unknown) => {
      this.#canResize = null;
      throw error;
    });
    return this.#canResize;
  }

  /** Listens for workloads that are there already; part of opening. */
  async takeOver(): Promise<void> {
    await this.#doors.listen();
    this.#mirror.start();
    this.#pool.start();
    await this.#fleet.sweep(Date.now());
    this.#timers = [
      this.#every(SWEEP_EVERY_MS, "old pods stay for now", () => this.#fleet.sweep(Date.now())),
      this.#every(LOGS_EVERY_MS, "logs of servers that are gone stay alone for now", () => this.takeLogs()),
    ];
  }

  /** Keeps the logs of servers that are gone. */
  takeLogs(): Promise<void> {
    return this.#fleet.takeLogs(this.#parts.options.isLive ?? (() => true));
  }

  #every(intervalMs: number, failure: string, work: () => Promise<void>): NodeJS.Timeout {
    const onError = (error: unknown): void => this.#parts.options.onWarning?.(failure, { err: error });
    return setInterval(() => void work().catch(onError), intervalMs).unref();
  }

  async probe(): Promise<Probe> {
    return probeOf(this.#parts.options);
  }

  create(spec: WorkloadSpec, { signal }: CallOptions = {}): Promise<Observed> {
    const before = this.#creating.get(spec.uid);
    if (before) return before;
    const creating = this.#serial
      .run(spec.uid, async () => {
        const found = await this.#fleet.find(spec.uid);
        const there = found && this.#fleet.observed(found);
        const isAgain = there?.endedBy === "platform";
        return (
          (found && isAgain ? await this.#fleet.resume(found) : there) ?? (await this.#create(spec, found, signal))
        );
      })
      .finally(() => this.#creating.delete(spec.uid));
    this.#creating.set(spec.uid, creating);
    return creating;
  }

  async #create(spec: WorkloadSpec, found: Found | null, signal?: AbortSignal): Promise<Observed> {
    if (this.#stopped) throw new PlatformError("unavailable", "The server is stopping.");
    signal?.throwIfAborted();
    checkSpec(spec);
    chooseGrade(probeOf(this.#parts.options).grades, [spec.isolation]);
    if (spec.snapshot !== undefined) throw new PlatformError("unprocessable", "Driver kubernetes has no snapshots.");
    const wanted = await this.#withCommand({ ...spec, env: { ...this.#ownEnv(spec.image), ...spec.env } });
    const mounts = spec.mounts ?? [];
    try {
      if (found) await this.#fleet.clear(found);
      const claims = await this.#volumes.hold(spec.uid, mounts);
      const image = this.#imageOf(spec.image);
      // The base image is the operator's, and its processes are root's.
      const ownUser = !isBaseImage(spec.image, this.#parts.options.brand);
      return await this.#starts.start({ spec: wanted, image, ownUser, claims }, signal);
    } catch (error) {
      await this.#volumes.release(spec.uid, mounts).catch(() => {}); // the first error is the one to tell
      throw error;
    }
  }

  /** A cluster does not tell the command that an image names: the image's registry does. */
  async #withCommand(spec: WorkloadSpec): Promise<WorkloadSpec> {
    if (!spec.exec || spec.exec.argv.length > 0 || spec.exec.builtin !== undefined) return spec;
    const argv = (await this.#parts.options.commandOf?.(this.#imageOf(spec.image), spec.pull?.credentials)) ?? [];
    if (argv.length > 0) return { ...spec, exec: { ...spec.exec, argv } };
    throw new PlatformError(
      "unprocessable",
      `The image ${spec.image} names no command, and neither does the workload.`,
    );
  }

  /** Names of the base image lead to the operator's choice. Every other name is the kubelet's to find. */
  #imageOf(name: string): string {
    const { options, image } = this.#parts;
    return isBaseImage(name, options.brand) ? (options.baseImage ?? image) : name;
  }

  #ownEnv(name: string): Record<string, string> {
    return baseEnv(name, this.#parts.options.brand) ?? {};
  }

  /** A workload that is still starting is none yet. */
  async observe(uid: string): Promise<Observed | null> {
    return this.#creating.has(uid) ? null : this.#fleet.observe(uid);
  }

  async list(): Promise<Observed[]> {
    return (await this.#fleet.all()).flatMap((found) =>
      this.#creating.has(found.record.uid) ? [] : (this.#fleet.observed(found) ?? []),
    );
  }

  async waitExit(uid: string, options?: CallOptions): Promise<Observed | null> {
    if (!this.#creating.has(uid)) await this.#fleet.waitExit(uid, options);
    return this.observe(uid);
  }

  prolong(uid: string, endsAtMs: number): Promise<void> {
    return this.#fleet.prolong(uid, endsAtMs);
  }

  stats(uid: string): Promise<Stats> {
    return this.#fleet.stats(uid);
  }

  readOutput(uid: string, stream: "stdout" | "stderr", offset: number, bytesMax: number): Promise<Output> {
    return this.#fleet.readOutput(uid, stream, offset, bytesMax);
  }

  async destroy(uid: string, { graceMs = 0, keepFiles = false, ended }: DestroyOptions = {}): Promise<void> {
    await this.#creating.get(uid)?.catch(() => {}); // the caller of that create gets the error
    await this.#serial.run(uid, async () => {
      if (keepFiles) return this.#fleet.halt(uid, graceMs, ended);
      const mounts = (await this.#fleet.find(uid))?.record.mounts ?? [];
      await this.#fleet.remove(uid, graceMs, ended);
      await this.#volumes.release(uid, mounts);
    });
  }

  async stop(workloads: OnStop = "keep"): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await Promise.allSettled(this.#creating.values());
    for (const found of workloads === "keep" ? [] : await this.#fleet.all()) {
      const { uid } = found.record;
      if (workloads !== "freeze") await this.destroy(uid, { keepFiles: workloads === "end" });
      else if (this.#fleet.observed(found)?.state === "running") await this.#fleet.setFrozen(uid, true);
    }
    for (const timer of this.#timers) clearInterval(timer);
    await this.#pool.stop();
    await this.#doors.close();
    await this.#egress.stop();
    await this.#mirror.stop();
    await this.#parts.client.close();
  }

  /** A pod for a moment, which has the volume and takes the files in. */
  async #fill(volume: string, from: string): Promise<void> {
    const uid = `fill-${randomBytes(6).toString("hex")}`;
    const mounts = [{ source: { volume }, path: FILL_AT }];
    const image = "base-image";
    const fixed = { env: {}, limits: FILL_LIMITS, network: "closed" } as const;
    try {
      const { endpoint } = await this.create({ uid, name: "fill", image, mounts, ...fixed });
      await sendFiles(endpoint, from, FILL_AT);
    } finally {
      await this.destroy(uid);
    }
  }
}

/** A name is resolved here: workloads have no name server. */
async function doorsOf(text: string): Promise<{ host: string; port: number }> {
  const doors = parseDoors(text);
  if (!doors) throw needed("kube_doors (BERTH_KUBE_DOORS)", "HOST:PORT, by which pods reach this server");
  try {
    return { host: (await lookup(doors.host)).address, port: doors.port };
  } catch (cause) {
    throw new PlatformError("unavailable", `The name ${doors.host} of kube_doors has no address.`, { cause });
  }
}
