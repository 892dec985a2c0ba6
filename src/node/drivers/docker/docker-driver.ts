/**
 * Workloads as containers of a Docker Engine on this machine, with the same daemon inside as everywhere. The engine and
 * the server see the same data folder: a container's sockets lie there, and so do the doors. What the engine knows is
 * asked of the engine each time, so that a server can be killed at any moment and the next one goes on.
 *
 *   bin/         the daemon, visible to every workload
 *   workloads/   one folder each; see `workload/fleet.ts`
 *   images/      the machine's programs as the base image is made from them
 *   volumes/     notes about volumes that are being filled
 */
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync } from "node:fs";
import type { Socket } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { PlatformError } from "../../../contract/errors.ts";
import { chooseGrade } from "../../../contract/isolation.ts";
import { removeTree } from "../../../lib/remove-tree.ts";
import type { Capabilities, CapabilityName } from "../../capabilities/capabilities.ts";
import type { CallOptions } from "../../dial/endpoint.ts";
import type { DestroyOptions, Driver, OnStop, Probe } from "../../driver.ts";
import { type EgressOptions, type EgressProxy, startEgressProxy } from "../../egress/egress-proxy.ts";
import type { Observed, Output, Stats, WorkloadSpec } from "../../workload.ts";
import { setEnd } from "../common/daemon-config.ts";
import { installDaemon } from "../common/install-daemon.ts";
import { readOutputFile } from "../common/output-file.ts";
import { PROXY_ENV } from "../common/proxy-env.ts";
import { Serial } from "../common/serial.ts";
import { checkSpec } from "../common/spec-check.ts";
import { type BaseImage, openBaseImage, openSkeleton } from "../local/images/base-image.ts";
import { loaderPath, openLoaderLayer } from "../local/images/loader-layer.ts";
import { imageSchema, statsSchema } from "./engine/answers.ts";
import { DockerClient } from "./engine/docker-client.ts";
import { DOCKER_HOST_DEFAULT, parseDockerHost } from "./engine/docker-host.ts";
import { type Engine, examine } from "./engine/ground.ts";
import { importBase } from "./images/base-image.ts";
import { encodePath, findImage, type ImageNames } from "./images/docker-images.ts";
import { DockerImages } from "./images/images.ts";
import { imageLoader } from "./images/load-image.ts";
import { DockerSnapshots } from "./images/snapshots.ts";
import { Storage } from "./storage/storage.ts";
import { openCage } from "./storage/unpacking.ts";
import { VolumeStore } from "./storage/volumes.ts";
import { Doors } from "./workload/doors.ts";
import { Fleet, type Found } from "./workload/fleet.ts";
import { Loader } from "./workload/loader.ts";
import { DockerResizing } from "./workload/resizing.ts";
import { tryOnce } from "./workload/trial.ts";

export interface DockerDriverOptions {
  /** Folder that only this driver uses, at the same path for the engine. */
  dataDir: string;
  /** The part before the slash in names of the base image. */
  brand: string;
  /** The daemon's executable. */
  sandboxd: string;
  /** A Node executable to put into the base image. */
  nodeBinary?: string;
  /** Name of this machine. Default: its host name. */
  node?: string;
  /** DOCKER_HOST. Default: the engine's usual socket. */
  host?: string | undefined;
  /** An image of the engine in place of the base image that Berth makes. */
  image?: string | undefined;
  /** A runtime of the engine, such as runsc. Default: the engine's own choice. */
  runtime?: string | undefined;
  /** What the base image is made from. Default: the machine's programs. */
  base?: BaseImage;
  /** Handles a connection that a workload made to the platform. Default: hang up. */
  onPlatform?: (uid: string, socket: Socket) => void;
  /** Rules and metering of outgoing traffic. */
  egress?: EgressOptions;
}

interface Parts {
  options: DockerDriverOptions;
  client: DockerClient;
  owner: string;
  engine: Engine;
  names: ImageNames;
}

export async function openDockerDriver(options: DockerDriverOptions): Promise<DockerDriver> {
  const { dataDir: dir, brand } = options;
  for (const name of ["bin", "workloads", "images"]) mkdirSync(join(dir, name), { recursive: true, mode: 0o755 });
  // A workload's root owns its files as root on disk and may set set-user-id bits: no other user may reach them.
  chmodSync(dir, 0o700);
  installDaemon(options.sandboxd, join(dir, "bin", "sandboxd"));
  const owner = ownerOf(brand, dir);
  const client = new DockerClient(parseDockerHost(options.host ?? DOCKER_HOST_DEFAULT));
  try {
    await client.open();
    const engine = await examine(client, options.runtime);
    const base = await baseOf(options, client, owner);
    const driver = new DockerDriver({ options, client, owner, engine, names: { brand, base, owner } });
    await driver.takeOver();
    return driver;
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** Name of a node in the engine, after its data folder. */
export const ownerOf = (brand: string, dataDir: string): string =>
  `${brand}-${createHash("sha256").update(dataDir).digest("hex").slice(0, 8)}`;

async function baseOf(options: DockerDriverOptions, client: DockerClient, owner: string): Promise<string> {
  const { dataDir, brand, image, nodeBinary } = options;
  if (image === undefined) {
    const dir = join(dataDir, "images", "base");
    const base = options.base ?? openBaseImage({ dir, brand, copied: true, ...(nodeBinary ? { nodeBinary } : {}) });
    return importBase({ client, owner, brand, base, skeleton: openSkeleton(join(dataDir, "images/skeleton"), "") });
  }
  const found = await client.find(imageSchema, `/images/${encodePath(image)}/json`);
  if (found) return found.Id;
  const remedy = `Run \`docker pull ${image}\`, or leave BERTH_DOCKER_IMAGE unset.`;
  throw new PlatformError("unavailable", `Docker has no image ${image}. ${remedy}`);
}

/** Absent: hot mounts, because the engine mounts nothing into a container that runs, and building. */
type DockerCapabilities = Omit<
  Capabilities,
  "hibernation" | "memorySnapshots" | "hotMounts" | "building" | "volumeCopies"
>;

export class DockerDriver implements Driver {
  readonly name = "docker";
  readonly node: string;
  readonly capabilities: DockerCapabilities;
  readonly #parts: Parts;
  readonly #fleet: Fleet;
  readonly #store: VolumeStore;
  readonly #storage: Storage;
  readonly #snapshots: DockerSnapshots;
  readonly #doors: Doors;
  readonly #egress: EgressProxy;
  readonly #creating = new Map<string, Promise<Observed>>();
  readonly #serial = new Serial();
  #stopped = false;

  constructor(parts: Parts) {
    const { options, client, owner, engine, names } = parts;
    const { dataDir, runtime } = options;
    this.#parts = parts;
    this.node = options.node ?? hostname();
    this.#egress = startEgressProxy(options.egress);
    this.#doors = new Doors({
      platform: options.onPlatform ?? ((_, socket) => socket.destroy()),
      egress: (uid, socket) => this.#egress.serve(uid, socket),
    });
    const binDir = join(dataDir, "bin");
    const image = names.base;
    this.#fleet = new Fleet({
      client,
      owner,
      ground: { node: this.node, dir: join(dataDir, "workloads"), grade: engine.grade },
      binDir,
      doors: this.#doors,
      loader: new Loader({ client, dir: openLoaderLayer(join(dataDir, "images", "loader")), path: loaderPath() }),
      runtime,
    });
    this.#store = new VolumeStore({ client, owner, image, notes: join(dataDir, "volumes") });
    this.#storage = new Storage({ store: this.#store, usersOf: (volume) => this.#fleet.usersOf(volume) });
    this.#snapshots = new DockerSnapshots({ client, owner, fleet: this.#fleet, serial: this.#serial });
    const unpack = openCage({ client, owner, image, binDir, runtime });
    const load = imageLoader({ client, unpack, dir: join(dataDir, "images", "loads") });
    this.capabilities = {
      freezing: {
        freeze: (uid) => this.#serial.run(uid, () => this.#fleet.setFrozen(uid, true)),
        thaw: (uid) => this.#serial.run(uid, () => this.#fleet.setFrozen(uid, false)),
      },
      resizing: new DockerResizing({ client, fleet: this.#fleet, serial: this.#serial }),
      snapshots: this.#snapshots,
      volumes: this.#storage.volumes,
      drives: this.#storage.drives,
      images: new DockerImages({ client, names, load }),
      unpacking: {
        unpack: (archive, target, limits, options = {}) =>
          unpack({ work: { kind: "files", limits }, archive, target }, options),
      },
    };
  }

  async capability<Name extends CapabilityName>(name: Name): Promise<Capabilities[Name] | null> {
    const all: Partial<Capabilities> = this.capabilities;
    return all[name] ?? null;
  }

  /** Tries one workload with an engine that is new here, and takes over those that an earlier server left; part of opening. */
  async takeOver(): Promise<void> {
    const { dataDir } = this.#parts.options;
    await removeTree(join(dataDir, "images", "loads"));
    await this.#fleet.adopt();
    await this.#store.sweep();
    await this.#snapshots.sweep();
    const { client, engine, names } = this.#parts;
    const what = JSON.stringify([engine.id, names.base, this.#parts.options.runtime ?? null]);
    await tryOnce({ driver: this, host: client.host.text, dataDir, what });
  }

  async probe(): Promise<Probe> {
    return this.#parts.engine.probe;
  }

  create(spec: WorkloadSpec, { signal }: CallOptions = {}): Promise<Observed> {
    const before = this.#creating.get(spec.uid);
    if (before) return before;
    const creating = this.#serial
      .run(spec.uid, async () => {
        const there = await this.#fleet.find(spec.uid);
        const isAgain = there && !there.record.command && !there.container.State.Running;
        return there && !isAgain ? this.#fleet.observed(there) : this.#create(spec, signal, there);
      })
      .finally(() => this.#creating.delete(spec.uid));
    this.#creating.set(spec.uid, creating);
    return creating;
  }

  /** `ended`: the sandbox that starts again on its files. */
  async #create(spec: WorkloadSpec, signal: AbortSignal | undefined, ended: Found | null): Promise<Observed> {
    if (this.#stopped) throw new PlatformError("unavailable", "The server is stopping.");
    signal?.throwIfAborted();
    checkSpec(spec);
    chooseGrade(this.#parts.engine.probe.grades, [spec.isolation]);
    const { client, names } = this.#parts;
    const image = await findImage(client, names, spec.image);
    if (!image) throw new PlatformError("bad_request", `There is no image ${spec.image}.`);
    const isCopy = spec.snapshot !== undefined && !ended;
    const files = isCopy ? (await this.#snapshots.imageOf(spec.snapshot ?? "")).digest : image.digest;
    const env = { ...image.env, ...(spec.network === "outbound" ? PROXY_ENV : {}), ...spec.env };
    const { mounts, release } = await this.#storage.hold(spec.uid, spec.mounts ?? []);
    try {
      const order = { spec, image, files, mounts, env };
      return await (ended ? this.#fleet.startAgain(ended, order, signal) : this.#fleet.start(order, signal));
    } finally {
      release();
    }
  }

  /** A workload that is still starting is none yet. */
  async observe(uid: string): Promise<Observed | null> {
    return this.#creating.has(uid) ? null : this.#fleet.observe(uid);
  }

  async list(): Promise<Observed[]> {
    const all = await Promise.all((await this.#fleet.records()).map(({ uid }) => this.observe(uid)));
    return all.filter((each) => each !== null);
  }

  async waitExit(uid: string, options?: CallOptions): Promise<Observed | null> {
    if (!this.#creating.has(uid)) await this.#fleet.waitExit(uid, options);
    return this.observe(uid);
  }

  async prolong(uid: string, endsAtMs: number): Promise<void> {
    const found = await this.#fleet.find(uid);
    if (found?.container.State.Running) setEnd(this.#fleet.dirOf(found.record), endsAtMs);
  }

  async stats(uid: string): Promise<Stats> {
    const { container } = await this.#fleet.living(uid);
    const query = { stream: false, "one-shot": true };
    const path = `/containers/${container.Id}/stats`;
    const { memory_stats, cpu_stats, pids_stats } = await this.#parts.client.json(statsSchema, "GET", path, { query });
    return {
      memoryBytes: memory_stats.usage ?? 0,
      cpuMs: Math.floor((cpu_stats.cpu_usage.total_usage ?? 0) / 1e6),
      pids: pids_stats.current ?? 0,
    };
  }

  async readOutput(uid: string, stream: "stdout" | "stderr", offset: number, bytesMax: number): Promise<Output> {
    const { record } = await this.#fleet.known(uid);
    return readOutputFile(join(this.#fleet.dirOf(record), "run"), stream, offset, bytesMax);
  }

  async destroy(uid: string, { graceMs = 0, keepFiles = false, ended }: DestroyOptions = {}): Promise<void> {
    await this.#creating.get(uid)?.catch(() => {}); // the caller of that create gets the error
    await this.#serial.run(uid, () => this.#fleet[keepFiles ? "halt" : "remove"](uid, graceMs, ended));
  }

  async stop(workloads: OnStop = "keep"): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await Promise.allSettled(this.#creating.values());
    for (const { uid } of workloads === "keep" ? [] : await this.#fleet.records()) {
      if (workloads === "end") await this.#fleet.halt(uid, 0);
      else if (workloads === "kill") await this.#fleet.remove(uid, 0);
      else if ((await this.#fleet.observe(uid))?.state === "running") await this.#fleet.setFrozen(uid, true);
    }
    this.#doors.closeAll();
    await this.#egress.stop();
    await this.#parts.client.close();
  }
}
