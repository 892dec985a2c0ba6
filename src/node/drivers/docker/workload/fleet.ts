/**
 * All workloads of this node: containers of the engine that carry its label, each with a folder of the same data folder
 * that every server of the node has. The engine is asked each time; nothing about a container is remembered here but its
 * doors.
 *
 *   workloads/ID/run    shared with the workload, hostile ground
 *   workloads/ID/host   read-only for the workload: configuration, doors
 *   workloads/ID/ready  written once the workload was ready: a server that finds none removes the container
 *   workloads/ID/ended  a call of the platform ended the workload, which keeps its files
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "../../../../contract/errors.ts";
import { SANDBOX_FILES } from "../../../../contract/sandbox-wire.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { CallOptions, Endpoint } from "../../../dial/endpoint.ts";
import type { DestroyOptions } from "../../../driver.ts";
import type { Observed, WorkloadSpec } from "../../../workload.ts";
import { daemonConfig, noteEnd, saveDrives } from "../../common/daemon-config.ts";
import { listening } from "../../common/readiness.ts";
import { type Container, containerSchema, containersSchema, createdSchema } from "../engine/answers.ts";
import { type DockerClient, DockerRefusal, tolerating } from "../engine/docker-client.ts";
import type { ResolvedImage } from "../images/docker-images.ts";
import { type ContainerMount, containerBody, type Ground, observedOf, sharedFolders } from "./container.ts";
import { logsOf } from "./container-logs.ts";
import type { Doors } from "./doors.ts";
import { removeContainer } from "./helper.ts";
import type { Loader } from "./loader.ts";
import { LABEL, labelsOf, ownedBy, recordIn, type WorkloadRecord } from "./record.ts";
import { userOf } from "./workload-user.ts";

export interface FleetOptions {
  client: DockerClient;
  /** Name of this node in the engine. */
  owner: string;
  ground: Ground;
  /** Folder with the daemon's executable. */
  binDir: string;
  doors: Doors;
  loader: Loader;
  runtime?: string | undefined;
}

/** A workload to be started, with everything that was looked up for it. */
export interface Order {
  spec: WorkloadSpec;
  image: ResolvedImage;
  /** Id of the image that holds the files: the image's own, or a snapshot's. */
  files: string;
  mounts: ContainerMount[];
  env: Record<string, string>;
}

export interface Found {
  container: Container;
  record: WorkloadRecord;
}

const READY_FILE = "ready";
const ENDED_FILE = "ended";
/** Of the folder that the workload shares: mount points, and the daemon's notes. */
const RUN_FOLDERS = ["run/host", "run/bin", "run/state"];
/** What the message about a failed start is cut from. */
const LAST_WORDS = { lines: 20, bytesMax: 1024 ** 2 };
const KILL_WAIT_MS = 60_000;
/** Interval between looks for an engine that does not answer. */
const AWAY_LOOK_MS = 500;

export class Fleet {
  readonly #options: FleetOptions;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  async find(uid: string): Promise<Found | null> {
    const { client } = this.#options;
    const container = await client.find(containerSchema, `/containers/${this.#name(uid)}/json`);
    const record = recordIn(container?.Config.Labels);
    return container && record ? { container, record } : null;
  }

  async known(uid: string): Promise<Found> {
    const found = await this.find(uid);
    if (!found) throw new PlatformError("not_found", `There is no workload ${uid} on this machine.`);
    return found;
  }

  /** A workload that has not ended. */
  async living(uid: string): Promise<Found> {
    const found = await this.known(uid);
    if (!found.container.State.Running) throw new PlatformError("conflict", "The workload has ended.");
    return found;
  }

  observed({ container, record }: Found): Observed {
    const observed = observedOf(container, record, this.#options.ground);
    const isEnded = observed.state === "exited" && existsSync(join(this.dirOf(record), ENDED_FILE));
    return isEnded ? { ...observed, endedBy: "platform" } : observed;
  }

  async observe(uid: string): Promise<Observed | null> {
    const found = await this.find(uid);
    return found && this.observed(found);
  }

  dirOf({ id }: Pick<WorkloadRecord, "id">): string {
    return join(this.#options.ground.dir, id);
  }

  /** Records of all workloads, also of those that are still starting. */
  async records(): Promise<WorkloadRecord[]> {
    const { client, owner } = this.#options;
    const query = { all: true, filters: ownedBy(owner, "workload") };
    const all = await client.json(containersSchema, "GET", "/containers/json", { query });
    return all.flatMap(({ Labels: labels }) => recordIn(labels) ?? []);
  }

  /** Uids of the workloads that have the volume, from the moment they are made. */
  async usersOf(volume: string): Promise<string[]> {
    return (await this.records())
      .filter(({ mounts }) => mounts.some(({ source }) => "volume" in source && source.volume === volume))
      .map(({ uid }) => uid);
  }

  async start(order: Order, signal?: AbortSignal): Promise<Observed> {
    const { spec, image, mounts } = order;
    const { client, owner, ground, binDir, doors, runtime } = this.#options;
    const record: WorkloadRecord = {
      uid: spec.uid,
      name: spec.name,
      id: randomBytes(6).toString("hex"),
      image: image.name,
      mounts: spec.mounts ?? [],
      command: spec.exec !== undefined,
      alone: spec.exec?.alone ?? false,
      network: spec.network,
      ...(spec.log ? { log: spec.log } : {}),
    };
    const dir = this.dirOf(record);
    for (const name of [...RUN_FOLDERS, "host"]) mkdirSync(join(dir, name), { recursive: true });
    try {
      await doors.open(spec.uid, dir, spec.network);
      const workDir = spec.workDir ?? image.workDir;
      const cage = { runtime, limits: spec.limits, mounts: [...sharedFolders(dir, binDir), ...mounts] };
      const labels = labelsOf(owner, record);
      const body = containerBody({ image: order.files, name: spec.name, workDir, labels, cage });
      const query = { name: this.#name(spec.uid) };
      const { Id: id } = await client.json(createdSchema, "POST", "/containers/create", { query, body, signal });
      await this.#prepare(id, dir, order, workDir);
      await this.#launch(id, record, signal);
      writeFileSync(join(dir, READY_FILE), "");
      signal?.throwIfAborted();
      const container = await client.json(containerSchema, "GET", `/containers/${id}/json`);
      return observedOf(container, record, ground);
    } catch (error) {
      await this.#forget(record);
      throw error instanceof DockerRefusal ? refused(error) : error;
    }
  }

  /** Starts the container of a sandbox again, with the mounts that it was made with. */
  async startAgain({ container, record }: Found, order: Order, signal?: AbortSignal): Promise<Observed> {
    const { spec, image } = order;
    const dir = this.dirOf(record);
    // The folders themselves stay: the container has them mounted.
    for (const folder of ["run", "host"])
      for (const name of readdirSync(join(dir, folder))) await removeTree(join(dir, folder, name));
    for (const name of RUN_FOLDERS) mkdirSync(join(dir, name), { recursive: true });
    try {
      await this.#options.doors.open(spec.uid, dir, record.network);
      await this.#prepare(container.Id, dir, order, spec.workDir ?? image.workDir);
      await removeTree(join(dir, ENDED_FILE));
      await this.#launch(container.Id, record, signal);
      return this.observed(await this.known(spec.uid));
    } catch (error) {
      await this.halt(spec.uid, 0);
      throw error instanceof DockerRefusal ? refused(error) : error;
    }
  }

  /** Everything between a made container and a started one. */
  async #prepare(id: string, dir: string, { spec, image, env }: Order, workDir: string): Promise<void> {
    const { client, loader } = this.#options;
    await loader.provide(id, image);
    const config = daemonConfig({
      network: spec.network,
      pids: spec.limits.pids,
      env,
      workDir,
      user: await userOf(client, id, image),
      exec: spec.exec,
      imageArgv: image.argv,
      ownNames: spec.loopbackNames === true,
      pooled: false,
    });
    writeFileSync(join(dir, "host", SANDBOX_FILES.config), JSON.stringify(config));
    noteEnd(dir, spec.exec);
    if (spec.mounts?.length) saveDrives(dir, spec.mounts);
  }

  async #launch(id: string, record: WorkloadRecord, signal?: AbortSignal): Promise<void> {
    const { client, ground } = this.#options;
    signal?.throwIfAborted();
    await client.text("POST", `/containers/${id}/start`, { signal });
    const endpoint: Endpoint = { kind: "unix", node: ground.node, dir: join(this.dirOf(record), "run") };
    const enough = new AbortController();
    const ended = client.text("POST", `/containers/${id}/wait`, { patient: true, signal: enough.signal });
    try {
      // A short command may end before its daemon was seen.
      if ((await listening(endpoint, ended, signal)) || record.command) return;
      throw new PlatformError("internal", `The workload's start failed: ${await this.#lastWords(id)}`);
    } finally {
      enough.abort();
      await ended.catch(() => {});
    }
  }

  async #lastWords(id: string): Promise<string> {
    const text = (await logsOf(this.#options.client, id, LAST_WORDS)).trim();
    return text === "" ? "it ended without a word" : text.slice(-500);
  }

  /** Resolves when the workload has ended or is gone, also when the engine was away meanwhile. */
  async waitExit(uid: string, { signal }: CallOptions = {}): Promise<void> {
    const { client } = this.#options;
    for (;;) {
      signal?.throwIfAborted();
      try {
        const found = await this.find(uid);
        if (!found?.container.State.Running) return;
        const path = `/containers/${found.container.Id}/wait`;
        await tolerating([404], client.text("POST", path, { patient: true, signal }));
      } catch (error) {
        const isAway = error instanceof PlatformError && error.code === "unavailable" && !client.isClosed;
        if (!isAway || signal?.aborted) throw error;
        await delay(AWAY_LOOK_MS, undefined, { signal }).catch(() => {}); // the next round tells of the abort
      }
    }
  }

  async setFrozen(uid: string, frozen: boolean): Promise<Observed> {
    const { container } = await this.living(uid);
    if (container.State.Paused !== frozen) {
      const verb = frozen ? "pause" : "unpause";
      // 409: the container is so already, or has ended meanwhile, which the next look tells.
      await tolerating([409], this.#options.client.text("POST", `/containers/${container.Id}/${verb}`));
    }
    return this.observed(await this.living(uid));
  }

  async remove(uid: string, graceMs: number, ended?: DestroyOptions["ended"]): Promise<void> {
    const found = await this.find(uid);
    if (!found) return;
    const { container, record } = found;
    this.#options.doors.close(uid);
    if (container.State.Running) await this.#end(found, graceMs);
    await ended?.();
    await this.#forget(record);
  }

  /** Ends a sandbox and keeps its container, which holds its files. A command is removed. */
  async halt(uid: string, graceMs: number, ended?: DestroyOptions["ended"]): Promise<void> {
    const found = await this.find(uid);
    if (!found) return;
    if (found.record.command) return this.remove(uid, graceMs, ended);
    this.#options.doors.close(uid);
    if (found.container.State.Running) {
      await this.#end(found, graceMs);
      writeFileSync(join(this.dirOf(found.record), ENDED_FILE), "");
    }
    await ended?.();
  }

  async #end({ container, record }: Found, graceMs: number): Promise<void> {
    const { client } = this.#options;
    const path = `/containers/${container.Id}`;
    // 404 and 409: the container has ended meanwhile.
    const kill = (signal: string): Promise<void> =>
      tolerating([404, 409], client.text("POST", `${path}/kill`, { query: { signal } }));
    if (graceMs > 0) {
      if (container.State.Paused) await tolerating([404, 409], client.text("POST", `${path}/unpause`));
      await kill("SIGTERM");
      const patience = AbortSignal.timeout(graceMs);
      const gone = await this.waitExit(record.uid, { signal: patience }).then(
        () => true,
        (error: unknown) => {
          if (!patience.aborted) throw error;
          return false;
        },
      );
      if (gone) return;
    }
    await kill("SIGKILL");
    await this.waitExit(record.uid, { signal: AbortSignal.timeout(KILL_WAIT_MS) });
  }

  /** Removes the container, whatever its state, and its folder. */
  async #forget(record: WorkloadRecord): Promise<void> {
    const { client, doors } = this.#options;
    doors.close(record.uid);
    const found = await this.find(record.uid);
    if (found?.record.id === record.id) await removeContainer(client, found.container.Id);
    await removeTree(this.dirOf(record));
  }

  /**
   * Takes over what an earlier server left: running and ended workloads are kept; unfinished starts, and folders without
   * a container, are removed. Commands that do not outlive their server end; their output stays.
   */
  async adopt(): Promise<void> {
    const { client, owner, ground, doors } = this.#options;
    const kept = new Set<string>();
    for (const record of await this.records()) {
      const dir = this.dirOf(record);
      if (!existsSync(join(dir, READY_FILE))) {
        await this.#forget(record);
        continue;
      }
      kept.add(record.id);
      const found = await this.find(record.uid);
      if (!found?.container.State.Running) continue;
      if (record.alone) await this.#end(found, 0);
      else await doors.open(record.uid, dir, record.network);
    }
    for (const id of readdirSync(ground.dir)) if (!kept.has(id)) await removeTree(join(ground.dir, id));
    const query = { all: true, filters: { label: [`${LABEL.node}=${owner}`, `${LABEL.role}=helper`] } };
    for (const { Id: id } of await client.json(containersSchema, "GET", "/containers/json", { query }))
      await removeContainer(client, id);
  }

  #name(uid: string): string {
    return `${this.#options.owner}-${uid}`;
  }
}

function refused({ status, message }: DockerRefusal): PlatformError {
  if (status === 404) return new PlatformError("bad_request", `Docker cannot start the workload: ${message}`);
  if (status === 409) return new PlatformError("conflict", `Docker cannot start the workload: ${message}`);
  return new PlatformError("unprocessable", `Docker cannot start the workload: ${message}`);
}
