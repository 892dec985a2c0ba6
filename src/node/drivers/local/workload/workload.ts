/**
 * One workload of this machine.
 *
 * Its mode is observed, not remembered: exited (its first process is gone), frozen (its control group says so),
 * running. The record's phase only tells a finished start from an interrupted one.
 */

import { type FSWatcher, watch } from "node:fs";
import type { Server, Socket } from "node:net";
import { constants } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { PlatformError } from "../../../../contract/errors.ts";
import { CONTROL, SANDBOX_FILES, type SandboxClaim } from "../../../../contract/sandbox-wire.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import type { DestroyOptions } from "../../../driver.ts";
import type { Limits, Mount, Observed, Output, Stats } from "../../../workload.ts";
import { callControl } from "../../common/control.ts";
import { EGRESS_SOCKET, saveDrives, setEnd } from "../../common/daemon-config.ts";
import { openDoor } from "../../common/doors.ts";
import { readOutputFile } from "../../common/output-file.ts";
import { warmUp } from "../../common/warm-up.ts";
import { groupLimits } from "../gvisor/guest-limits.ts";
import { copyMemory, endCopy, forgetMemory, type Sleeper, writeMemory } from "../gvisor/memory.ts";
import {
  cgroupStats,
  freezeCgroup,
  isFrozen,
  oomKills,
  processesIn,
  removeCgroup,
  setCgroupLimits,
} from "../machine/cgroup.ts";
import type { Machine } from "../machine/machine.ts";
import { findMount, mountSourceOf, readMountTable } from "../machine/mount-table.ts";
import { writePage } from "../machine/page-file.ts";
import {
  freezeBySignal,
  isKilled,
  isStopped,
  killBelow,
  processesNaming,
  processStats,
  signal as sendSignal,
} from "../machine/process-tree.ts";
import type { Nat } from "../network/nat.ts";
import { type LiveRoot, type RootDisks, usedOnDisk } from "../storage/root-disks.ts";
import { enter } from "./launch.ts";
import type { HostMount } from "./launch-program.ts";
import { findProcess, isAlive, isOfThisBoot, NO_SLOT, readExit, saveRecord, type WorkloadRecord } from "./record.ts";

export type Door = "platform" | "egress";

export interface WorkloadContext {
  node: string;
  machine: Machine;
  nat: Nat | null;
  /** Null where roots have no size. */
  disks: RootDisks | null;
  /** Handles a connection that the workload made to the platform or to the outside. */
  onDoor: Record<Door, (uid: string, socket: Socket) => void>;
}

/** The network of a workload that has an interface; a guest kernel has none, and goes out through the proxy. */
export const natFor = ({ nat }: Pick<WorkloadContext, "nat">, { network, grade }: WorkloadRecord): Nat | null =>
  network === "outbound" && grade !== "vm-like" ? nat : null;

/** Changes that give a prepared workload to its owner; a cold create applies the same. */
export interface WorkloadClaim {
  name: string;
  limits: Limits;
  /** Mounts that the launch did not make. */
  hostMounts: HostMount[];
  /** The claim for the daemon; null when it was started with everything. */
  daemon: SandboxClaim | null;
}

/** Interval between checks of an ending process. */
const END_POLL_MS = 2;
/** Killed processes are gone in milliseconds unless the kernel holds them in I/O. */
const END_WAIT_MS = 20_000;
/** Longest wait for a signal to take effect; usually microseconds. */
const SIGNAL_WAIT_MS = 5_000;
/**
 * Interval between checks while a caller waits for an exit: the exit file is missing when the watcher was killed too.
 */
const EXIT_LOOK_MS = 2_000;

export class Workload {
  readonly dir: string;
  readonly record: WorkloadRecord;
  readonly #context: WorkloadContext;
  #doors: Server[] = [];
  /** As far as this server knows, without asking the machine. */
  #stands = false;

  constructor(context: WorkloadContext, dir: string, record: WorkloadRecord) {
    this.#context = context;
    this.dir = dir;
    this.record = record;
  }

  /** True until the exit is recorded, or no process is left to record it. */
  get alive(): boolean {
    const { record } = this;
    if (record.hibernated) return true;
    if (!isOfThisBoot(record)) return false;
    return isAlive(record) || (isAlive(record.watcher) && readExit(this.dir) === null);
  }

  /** A sandbox, whose files outlive its processes. */
  get keepsFiles(): boolean {
    return !this.record.command;
  }

  /**
   * `untouched`: the workload has just started, so it cannot be frozen or out of memory, and those checks are skipped.
   */
  observe({ untouched = false } = {}): Observed {
    const { record, dir } = this;
    const alive = (untouched && isThere(record.pid)) || this.alive;
    const exit = alive ? null : readExit(dir);
    const signal = exit?.exitSignal;
    const { node } = this.#context;
    return {
      uid: record.uid ?? "",
      node,
      state: alive ? (!untouched && this.#frozen() ? "frozen" : "running") : "exited",
      grade: record.grade,
      endpoint: { kind: "unix", node, dir: join(dir, "run") },
      ...(record.hibernated ? { hibernated: true } : alive ? { pid: record.pid } : {}),
      limits: record.limits,
      mounts: record.mounts,
      createdAt: record.createdAt,
      pooled: record.pooled,
      ...(record.log ? { log: record.log } : {}),
      ...(exit?.exitCode === undefined ? {} : { exitCode: exit.exitCode }),
      ...(signal === undefined ? {} : { exitSignal: SIGNAL_NAMES.get(signal) ?? String(signal) }),
      oom: !(alive && untouched) && !record.hibernated && oomKills(record.cgroup) > 0,
      ...(alive ? {} : endedBy(record)),
      ...(record.otherBase ? { otherBase: true } : {}),
    };
  }

  /** Its root while it runs, where roots have a size. */
  get liveRoot(): LiveRoot | null {
    const { pid, disk, uid } = this.record;
    if (pid === 0 || !disk?.device) return null;
    return { dir: this.dir, pid, device: disk.device, sizeMb: disk.sizeMb, still: this.#stands || uid === null };
  }

  /** Opens the doors, before the workload's processes start or when they are adopted. */
  async open(): Promise<void> {
    if (this.record.grade === "none") return;
    this.#stands = this.record.pid > 0 && this.#frozen();
    this.#hold(this.record.limits);
    const listen = (door: Door, file: string): Promise<Server> =>
      openDoor(join(this.dir, "host", file), (socket) => {
        if (this.record.uid === null)
          socket.destroy(); // without an owner there is no identity to call with
        else this.#context.onDoor[door](this.record.uid, socket);
      });
    this.#doors.push(await listen("platform", SANDBOX_FILES.platform));
    if (this.record.network === "outbound") this.#doors.push(await listen("egress", EGRESS_SOCKET));
  }

  /** Lets a frozen workload end that was killed meanwhile; a thaw would otherwise be its end. */
  async endIfKilled(): Promise<void> {
    if (!this.alive || !this.#frozen() || !isKilled(this.record.pid)) return;
    await freezeCgroup(this.record.cgroup, false);
    await this.#gone();
  }

  /** See `endCopy` of gVisor; part of adopting it. */
  async endCopy(): Promise<void> {
    if (this.record.grade === "vm-like") await endCopy(this.#sleeper);
  }

  closeDoors(): void {
    for (const server of this.#doors.splice(0)) server.close();
  }

  async claim({ name, limits, hostMounts, daemon }: WorkloadClaim): Promise<void> {
    const { record } = this;
    const changes = {
      ...(record.name === name ? {} : { hostname: name }),
      ...(record.limits.memoryMb === limits.memoryMb ? {} : { memoryMb: limits.memoryMb }),
      ...(hostMounts.length > 0 ? { mounts: hostMounts } : {}),
    };
    if (!isDeepStrictEqual(record.limits, limits)) this.#hold(limits);
    Object.assign(record, { name, limits });
    // Written before the record, so that a record with an owner implies the owner's environment.
    if (daemon) writePage(join(this.dir, "host", SANDBOX_FILES.claim), JSON.stringify(daemon));
    saveRecord(this.dir, record);
    if (record.mounts.length > 0) saveDrives(this.dir, record.mounts);
    if (Object.keys(changes).length > 0) await enter(this.#context.machine, record, changes);
  }

  /** Runs commands in advance. Without a shell the attempt still warms up half. */
  async warm(): Promise<void> {
    await warmUp(this.observe().endpoint).catch(() => {});
  }

  async setFrozen(frozen: boolean): Promise<Observed> {
    this.#mustLive();
    const { record } = this;
    if (record.hibernated) return this.observe(); // `Fleet.wake` brings it back
    if (!frozen && this.#stands) {
      this.#stands = false;
      this.#context.disks?.look(); // so that its root has room when it goes on
    }
    if (this.#frozen() !== frozen && !(await freezeCgroup(record.cgroup, frozen))) {
      freezeBySignal(record.pid, frozen);
      // A signal takes effect when its process is scheduled next.
      const deadline = Date.now() + SIGNAL_WAIT_MS;
      while (isStopped(record.pid) !== frozen && this.alive && Date.now() < deadline) await delay(END_POLL_MS);
    }
    this.#stands = frozen;
    return this.observe();
  }

  /** Moves the time at which the workload ends by itself; see `Exec.endsAtMs`. */
  prolong(endsAtMs: number): void {
    if (this.alive) setEnd(this.dir, endsAtMs);
  }

  /** Writes the limits to its record, which is what the next server holds it to. */
  recordLimits(limits: Limits): void {
    this.record.limits = limits;
    saveRecord(this.dir, this.record);
  }

  async mount(mount: Mount, mounts: HostMount[]): Promise<void> {
    this.#mustLive();
    await enter(this.#context.machine, this.record, { mounts });
    this.#setMounts([...this.record.mounts, mount]);
  }

  /** Freezes the workload meanwhile, so that the mount point found is the one unmounted. */
  async unmount(mount: Mount, source: string): Promise<void> {
    this.#mustLive();
    const others = this.record.mounts.filter((each) => each !== mount);
    const held = !this.#frozen() && (await freezeCgroup(this.record.cgroup, true));
    try {
      const wanted = mountSourceOf(source, readMountTable("self"));
      const paths = others.map(({ path }) => path);
      const at = wanted && findMount(readMountTable(this.record.pid), wanted, mount.path, paths);
      if (at !== null) await enter(this.#context.machine, this.record, { unmount: at });
    } finally {
      if (held) await freezeCgroup(this.record.cgroup, false);
    }
    this.#setMounts(others);
  }

  stats(): Stats {
    this.#mustLive();
    if (this.record.hibernated) return { memoryBytes: 0, cpuMs: 0, pids: 0 };
    const counted = cgroupStats(this.record.cgroup);
    const traffic = natFor(this.#context, this.record)?.traffic(this.record.slot);
    const { disk, pid } = this.record;
    const diskBytes = disk && usedOnDisk(this.dir, pid, disk.sizeMb);
    return {
      ...(isWhole(counted) ? counted : { ...processStats(pid), ...counted }),
      ...(diskBytes === undefined ? {} : { diskBytes }),
      ...traffic,
    };
  }

  readOutput(stream: "stdout" | "stderr", offset: number, bytesMax: number): Promise<Output> {
    return readOutputFile(join(this.dir, "run"), stream, offset, bytesMax);
  }

  /** Resolves when the first process is gone. Rejects when the signal aborts. */
  async waitExit({ signal }: CallOptions = {}): Promise<void> {
    signal?.throwIfAborted();
    while (this.alive) {
      await this.#change(signal);
      signal?.throwIfAborted();
    }
  }

  /** Waits for a change in the workload's folder, at most EXIT_LOOK_MS. */
  #change(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        watcher?.close();
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, EXIT_LOOK_MS);
      signal?.addEventListener("abort", done, { once: true });
      const watcher = tryWatch(this.dir, done);
      if (!watcher || !this.alive) done();
    });
  }

  async destroy(graceMs: number, ended?: DestroyOptions["ended"]): Promise<void> {
    await this.#end(graceMs, ended);
    await removeTree(this.dir);
  }

  /** Ends all processes and keeps the files, for `Fleet.start` to start it again. */
  async halt(graceMs: number, ended?: DestroyOptions["ended"]): Promise<void> {
    const { record } = this;
    const lived = this.alive;
    await this.#end(graceMs, ended);
    if (lived) record.ended = true;
    Object.assign(record, { pid: 0, startTime: "", watcher: { pid: 0, startTime: "" }, slot: NO_SLOT });
    delete record.disk?.device;
    this.#stands = false;
    saveRecord(this.dir, record);
  }

  async #end(graceMs: number, ended?: DestroyOptions["ended"]): Promise<void> {
    this.closeDoors();
    if (this.record.hibernated) delete this.record.hibernated;
    await forgetMemory(this.dir);
    if (this.record.pid === 0) Object.assign(this.record, findProcess(this.dir));
    if (this.alive) {
      if (graceMs > 0) {
        if (this.#frozen()) await this.setFrozen(false);
        await this.#askToEnd(graceMs);
        const limit = AbortSignal.timeout(graceMs);
        while (this.alive && !limit.aborted) await delay(END_POLL_MS);
      }
      if (this.record.grade !== "none") sendSignal(this.record.pid, "SIGKILL");
    }
    // Without a pid namespace, the daemon is found by the folder in its arguments.
    if (this.record.grade === "none") for (const pid of processesNaming(`${this.dir}/`)) killBelow(pid);
    // A frozen process does not die, and an interrupted start may have left more than the first process.
    for (const pid of processesIn(this.record.cgroup)) sendSignal(pid, "SIGKILL");
    if (isFrozen(this.record.cgroup)) await freezeCgroup(this.record.cgroup, false);
    await this.#gone();
    await ended?.();
    await removeCgroup(this.record.cgroup);
  }

  /** Of a workload in gVisor the first process is runsc; its init is asked through the daemon. */
  async #askToEnd(graceMs: number): Promise<void> {
    if (this.record.grade !== "vm-like") sendSignal(this.record.pid, "SIGTERM");
    else await callControl(this.observe().endpoint, CONTROL.end, { graceMs }).catch(() => {}); // it is killed below
  }

  async #gone(): Promise<void> {
    const deadline = Date.now() + END_WAIT_MS;
    while (this.alive || processesIn(this.record.cgroup).length > 0) {
      if (Date.now() > deadline) throw new PlatformError("internal", "The workload's processes do not end.");
      await delay(END_POLL_MS);
    }
  }

  #hold(limits: Limits): void {
    if (this.record.hibernated) return; // it has no control group until it wakes
    setCgroupLimits(this.record.cgroup, groupLimits(this.record, limits));
  }

  #frozen(): boolean {
    return this.record.hibernated === true || (isFrozen(this.record.cgroup) ?? isStopped(this.record.pid));
  }

  #mustLive(): void {
    if (!this.alive) throw new PlatformError("conflict", "The workload has ended.");
  }

  /** Writes its memory to disk, and leaves nothing running. */
  async hibernate(): Promise<Observed> {
    this.#mustLive();
    const { record, dir } = this;
    if (record.hibernated) return this.observe();
    const wasFrozen = this.#frozen();
    if (wasFrozen) await this.setFrozen(false);
    try {
      await writeMemory(this.#sleeper);
    } catch (error) {
      if (wasFrozen && this.alive) await this.setFrozen(true);
      throw error;
    }
    this.closeDoors();
    await this.#gone();
    await removeCgroup(record.cgroup);
    Object.assign(record, { pid: 0, startTime: "", watcher: { pid: 0, startTime: "" }, hibernated: true });
    delete record.disk?.device;
    saveRecord(dir, record);
    return this.observe();
  }

  get #sleeper(): Sleeper {
    const { dir, record } = this;
    const processes = (): number[] => processesIn(record.cgroup);
    const memoryBytes = (): number => cgroupStats(record.cgroup).memoryBytes ?? 0;
    return { id: record.id, pid: record.pid, dir, processes, memoryBytes, isAlive: () => this.alive };
  }

  /** Writes its memory to a folder, and goes on; see `copyMemory` of gVisor. */
  async copyMemory(meanwhile: () => Promise<void>): Promise<string> {
    this.#mustLive();
    const wasFrozen = this.#frozen();
    if (wasFrozen) await this.setFrozen(false);
    try {
      return await copyMemory(this.#sleeper, meanwhile);
    } finally {
      if (wasFrozen && this.alive) await this.setFrozen(true);
    }
  }

  #setMounts(mounts: Mount[]): void {
    this.record.mounts = mounts;
    saveRecord(this.dir, this.record);
    saveDrives(this.dir, mounts);
  }
}

function endedBy(record: WorkloadRecord): Pick<Observed, "endedBy"> {
  if (record.ended) return { endedBy: "platform" };
  return isOfThisBoot(record) ? {} : { endedBy: "machine" };
}

/** A cheap check by pid alone: right after the start the pid cannot belong to another process. */
function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false; // or the server may not signal it
  }
}

/** Null when the folder is gone, and with it the workload. */
function tryWatch(dir: string, onChange: () => void): FSWatcher | null {
  try {
    return watch(dir, { persistent: false }, onChange).on("error", onChange);
  } catch {
    return null;
  }
}

const SIGNAL_NAMES = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

const isWhole = (stats: Partial<Stats>): stats is Stats =>
  stats.memoryBytes !== undefined && stats.cpuMs !== undefined && stats.pids !== undefined;
