/**
 * All workloads of this machine, including prepared ones, and the steps by which each is created: draft (a folder,
 * control groups, a range of ids), launch (processes), claim (the owner's name, limits, environment).
 */
import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { DestroyOptions } from "../../../driver.ts";
import type { Grade, Limits, NetworkClass } from "../../../workload.ts";
import { rootSizeMb } from "../../common/root-size.ts";
import { Gate } from "../../common/serial.ts";
import { daemonAnswers, forgetMemory } from "../gvisor/memory.ts";
import type { ResolvedImage } from "../images/images.ts";
import { createCgroup } from "../machine/cgroup.ts";
import { idBaseOf } from "../machine/machine.ts";
import { SLOTS_MAX } from "../network/nat-addresses.ts";
import type { LiveRoot } from "../storage/root-disks.ts";
import { Tasks } from "../tasks/tasks.ts";
import { adopt } from "./adopt.ts";
import { onBase } from "./base-below.ts";
import { type Launch, launch, launchCopy, relaunch } from "./launch.ts";
import { launchPlain, plainHome } from "./launch-plain.ts";
import type { HostMount, RootPart } from "./launch-program.ts";
import type { Order } from "./order.ts";
import { Pool } from "./pool.ts";
import { RECORD_FORMAT, type WorkloadRecord } from "./record.ts";
import { natFor, Workload, type WorkloadContext } from "./workload.ts";

export interface FleetOptions {
  context: WorkloadContext;
  dir: string;
  poolSize: number;
  onWarning: (message: string, fields: Record<string, unknown>) => void;
}

interface Draft {
  network: NetworkClass;
  name: string;
  limits: Limits;
  /** Size of its root. */
  sizeMb: number;
  grade: Grade;
}

/** Limits of a pooled workload until it is claimed: the usual ones, so that a claim need not change them. */
const POOLED_LIMITS: Limits = { memoryMb: 4096, cpus: 2 };
const POOLED_NAME = "sandbox";
/** Most claims at once: a few more than one batch of host names. */
const CLAIMS_MAX = 16;

export class Fleet {
  readonly #options: FleetOptions;
  readonly #byId = new Map<string, Workload>();
  readonly #byUid = new Map<string, Workload>();
  /** Limits launches at once; more would only compete for the processors. */
  readonly #gate = new Gate(Math.max(2, availableParallelism()));
  /**
   * Limits claims at once, so that of a hundred claims the first are answered early: their owners then use the
   * processors that the single-threaded claims leave free.
   */
  readonly #claims = new Gate(CLAIMS_MAX);
  readonly #pool: Pool<Workload>;
  /** Null without isolation: a command then needs a daemon that ends the processes it started. */
  readonly #tasks: Tasks | null;
  readonly #poolable = new Map<string, { image: ResolvedImage; network: NetworkClass }>();

  constructor(options: FleetOptions) {
    this.#options = options;
    const { context, onWarning } = options;
    const { grade, spawner } = context.machine;
    const dir = join(options.dir, "../tasks");
    const freeSlot = (): number => this.#freeSlot();
    this.#tasks =
      grade === "none" ? null : new Tasks({ context, dir, executable: spawner.executable, freeSlot, onWarning });
    this.#pool = new Pool({
      size: options.poolSize,
      make: (key) => this.#prepare(key),
      discard: (workload) => this.remove(workload, 0),
      onError: (error) => options.onWarning("A prepared workload could not be started.", { error }),
    });
  }

  /** Adopts workloads of an earlier run of the server; part of opening. */
  async open(): Promise<void> {
    const { context, dir } = this.#options;
    for (const each of await adopt(context, dir, context.machine.cgroups)) this.#adopt(each, "found");
    for (const each of (await this.#tasks?.open()) ?? []) this.#adopt(each, "found");
  }

  async close(): Promise<void> {
    await this.#tasks?.stop();
  }

  find(uid: string): Workload | undefined {
    return this.#byUid.get(uid);
  }

  known(uid: string): Workload {
    const workload = this.find(uid);
    if (!workload) throw new PlatformError("not_found", `There is no workload ${uid} on this machine.`);
    return workload;
  }

  claimed(): Workload[] {
    return [...this.#byUid.values()];
  }

  /** The roots that workloads have mounted, prepared ones included. */
  liveRoots(): LiveRoot[] {
    return [...this.#byId.values()].flatMap((workload) => workload.liveRoot ?? []);
  }

  partsInUse(): RootPart[] {
    return [...this.#byId.values()].flatMap(({ record }) => record.parts);
  }

  /** Uids of the workloads that use the volume, from the moment they are drafted. */
  usersOf(volume: string): string[] {
    return [...this.#byId.values()]
      .filter(({ record }) => record.mounts.some(({ source }) => "volume" in source && source.volume === volume))
      .flatMap(({ record }) => record.uid ?? []);
  }

  #adopt(workload: Workload, how: "found" | "started"): void {
    this.#byId.set(workload.record.id, workload);
    const { uid, slot, pid } = workload.record;
    if (uid === null) return;
    this.#byUid.set(uid, workload);
    const nat = natFor(this.#options.context, workload.record);
    if (!nat || !workload.alive) return;
    if (how === "found") nat.adopt(pid, slot, uid);
    else nat.own(slot, uid, pid);
  }

  async start(order: Order, grade: Grade, signal?: AbortSignal): Promise<Workload> {
    const { spec, image, parts, mounts, env, workDir, memory } = order;
    const usual = grade === this.#options.context.machine.grade;
    // Only the daemon can run a command as another user than root.
    if (this.#tasks && usual && spec.exec?.alone && !env.BL_SANDBOX_USER_ENABLED && !image.user) {
      const task = await this.#tasks.start(order, signal);
      this.#adopt(task, "started");
      return task;
    }
    const ended = this.find(spec.uid);
    const sizeMb = spec.storageMb ?? rootSizeMb(spec.limits.memoryMb);
    const poolable = usual && !spec.exec && !spec.snapshot && !ended && sizeMb === rootSizeMb(POOLED_LIMITS.memoryMb);
    const pooled = poolable ? this.#take(image, spec.network) : undefined;
    const { network, name, limits } = spec;
    const workload = ended
      ? await this.#redraft(ended, order, grade)
      : (pooled ?? this.#draft(image, parts, { network, name, limits, sizeMb, grade }));
    const { record, dir } = workload;
    record.uid = spec.uid;
    record.mounts = spec.mounts ?? [];
    if (spec.log) record.log = spec.log;
    record.createdAt = new Date().toISOString();
    try {
      if (pooled) this.#options.context.nat?.own(record.slot, spec.uid, record.pid);
      else {
        record.command = spec.exec !== undefined;
        const exec = spec.exec ? { exec: spec.exec } : {};
        const ownNames = spec.loopbackNames === true && natFor(this.#options.context, record) === null;
        const launching = { dir, record, image, mounts, env, workDir, ...exec, ownNames };
        if (memory !== undefined) await this.#launchCopy(workload, launching, memory);
        else await this.#launch(workload, launching, signal);
      }
      const plain = record.grade === "none" ? { env: { ...env, HOME: plainHome(dir) }, workDir: plainHome(dir) } : {};
      const daemon = pooled ? { env, workDir, ...plain } : null;
      const claim = { name: spec.name, limits: spec.limits, hostMounts: pooled ? mounts : [], daemon };
      await this.#claims.run(() => workload.claim(claim));
      this.#options.context.disks?.look();
      signal?.throwIfAborted();
    } catch (error) {
      await (ended ? workload.halt(0) : this.remove(workload, 0));
      throw error;
    }
    this.#byUid.set(spec.uid, workload);
    return workload;
  }

  /** Brings back a workload whose memory lies on disk. One that cannot be brought back has ended, and keeps its files. */
  async wake(workload: Workload, mounts: HostMount[]): Promise<void> {
    const { machine, disks } = this.#options.context;
    const { record, dir } = workload;
    for (const name of ["exit", "pid"]) await removeTree(join(dir, name));
    record.cgroup = createCgroup(machine.cgroups, record.id);
    delete record.hibernated;
    try {
      await this.#gate.run(() => relaunch(machine, { dir, record, mounts, disks }, () => workload.open()));
      await daemonAnswers(dir, () => workload.alive);
    } catch (error) {
      await workload.halt(0);
      throw error;
    }
    await forgetMemory(dir);
    disks?.watch();
  }

  async remove(workload: Workload, graceMs: number, ended?: DestroyOptions["ended"]): Promise<void> {
    await workload.destroy(graceMs, ended);
    const { id, uid, slot } = workload.record;
    if (uid !== null) await this.#options.context.nat?.release(slot, uid);
    this.#byId.delete(id);
    if (uid !== null && this.#byUid.get(uid) === workload) this.#byUid.delete(uid);
  }

  /** Keeps prepared workloads of this image and network from now on. */
  stock(image: ResolvedImage, network: NetworkClass): string {
    const key = `${image.digest} ${network}`;
    this.#poolable.set(key, { image, network });
    this.#pool.want(key);
    return key;
  }

  /** Ends the prepared workloads of images that are gone. */
  async unstock(isGone: (image: ResolvedImage) => boolean): Promise<void> {
    for (const [key, { image }] of [...this.#poolable]) {
      if (!isGone(image)) continue;
      this.#poolable.delete(key);
      await this.#pool.forget(key);
    }
  }

  /** Resolves when the pool is full. */
  stocked(): Promise<void> {
    return this.#pool.filled();
  }

  drain(): Promise<void> {
    return this.#pool.drain();
  }

  /** Takes a prepared workload, skipping those that died while they waited. */
  #take(image: ResolvedImage, network: NetworkClass): Workload | undefined {
    const key = this.stock(image, network);
    for (let found = this.#pool.take(key); found; found = this.#pool.take(key)) {
      if (found.alive) return found;
      const { id } = found.record;
      this.remove(found, 0).catch((error) => {
        this.#options.onWarning("A prepared workload that had died could not be removed.", { error, id });
      });
    }
    return undefined;
  }

  async #prepare(key: string): Promise<Workload> {
    const kind = this.#poolable.get(key);
    if (!kind) throw new Error(`the pool was asked for an unknown kind: ${key}`);
    const { image, network } = kind;
    const { grade } = this.#options.context.machine;
    const sizeMb = rootSizeMb(POOLED_LIMITS.memoryMb);
    const draft = { network, name: POOLED_NAME, limits: POOLED_LIMITS, sizeMb, grade };
    const workload = this.#draft(image, image.parts, draft);
    const { record, dir } = workload;
    record.pooled = true;
    try {
      const { env, workDir } = image;
      await this.#launch(workload, { dir, record, image, mounts: [], env, workDir });
      await workload.warm();
    } catch (error) {
      await this.remove(workload, 0);
      throw error;
    }
    return workload;
  }

  #draft(image: ResolvedImage, parts: RootPart[], { network, name, limits, sizeMb, grade }: Draft): Workload {
    const { context } = this.#options;
    const id = randomBytes(6).toString("hex");
    const { cgroups } = context.machine;
    const dir = join(this.#options.dir, id);
    const slot = this.#freeSlot();
    const workload = new Workload(context, dir, {
      format: RECORD_FORMAT,
      id,
      uid: null,
      phase: "starting",
      name,
      image: image.name,
      imageDigest: image.digest,
      parts,
      network,
      limits,
      mounts: [],
      command: false,
      grade,
      slot,
      idBase: idBaseOf(context.machine, slot),
      cgroup: createCgroup(cgroups, id),
      pid: 0,
      startTime: "",
      watcher: { pid: 0, startTime: "" },
      ...(context.disks && grade !== "none" ? { disk: { sizeMb } } : {}),
      pooled: false,
      createdAt: new Date().toISOString(),
    });
    this.#byId.set(id, workload);
    mkdirSync(dir, { mode: 0o700 });
    return workload;
  }

  /**
   * Makes an ended sandbox ready to start again on its files. Its record says "ready" all the time: a server that is
   * killed meanwhile leaves a sandbox that has ended.
   */
  async #redraft(workload: Workload, { spec, image }: Order, grade: Grade): Promise<Workload> {
    const { machine } = this.#options.context;
    const { record, dir } = workload;
    await workload.halt(0); // what an interrupted start may have left
    for (const name of ["run", "host", "exit", "pid"]) await removeTree(join(dir, name));
    const slot = this.#freeSlot();
    const parts = onBase(record.parts, record.imageDigest, image.digest);
    if (parts === record.parts) delete record.otherBase;
    else Object.assign(record, { parts, imageDigest: image.digest, otherBase: true });
    delete record.ended;
    Object.assign(record, {
      ...{ slot, name: spec.name, network: spec.network, limits: spec.limits, pooled: false, grade },
      ...{ idBase: idBaseOf(machine, slot), cgroup: createCgroup(machine.cgroups, record.id) },
    } satisfies Partial<WorkloadRecord>);
    return workload;
  }

  /** A copy has the memory of another workload, and a generation that tells its programs so. */
  async #launchCopy(workload: Workload, launching: Launch, snapshot: string): Promise<void> {
    const { machine, disks } = this.#options.context;
    if (workload.record.grade !== "vm-like")
      throw new PlatformError("unprocessable", "A workload that goes on from memory needs isolation 'vm-like'.");
    const copy = { ...launching, disks, generation: randomUUID() };
    await this.#gate.run(() => launchCopy(machine, copy, snapshot, () => workload.open()));
    await daemonAnswers(workload.dir, () => workload.alive);
    await forgetMemory(workload.dir);
    disks?.watch();
  }

  #launch(workload: Workload, launching: Launch, signal?: AbortSignal): Promise<void> {
    const { machine } = this.#options.context;
    return this.#gate.run(() =>
      machine.grade === "none"
        ? launchPlain(machine, launching, signal)
        : this.#launchIsolated(workload, launching, signal),
    );
  }

  async #launchIsolated(workload: Workload, launching: Launch, signal?: AbortSignal): Promise<void> {
    const { machine, disks } = this.#options.context;
    const nat = natFor(this.#options.context, workload.record);
    await launch(machine, { ...launching, disks }, () => workload.open(), signal);
    disks?.watch();
    const { pid, slot, uid } = workload.record;
    if (!nat || !workload.alive) return;
    await nat.attach(pid, slot);
    if (uid !== null) nat.own(slot, uid, pid);
  }

  #freeSlot(): number {
    const taken = new Set([...this.#byId.values()].map(({ record }) => record.slot));
    for (const slot of this.#tasks?.slotNumbers ?? []) taken.add(slot);
    for (let slot = 0; slot < SLOTS_MAX; slot++) if (!taken.has(slot)) return slot;
    throw new PlatformError("unavailable", "This machine runs as many workloads as it can.");
  }
}
