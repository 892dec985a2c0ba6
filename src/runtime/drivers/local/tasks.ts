/**
 * Commands that run without a daemon: tasks of jobs. Each has a slot while it runs (a folder, control groups, a range of
 * ids), and everything else anew: namespaces, files, network. Slots are kept for the next command, since making control
 * groups and folders costs as much as all the rest.
 */
import { randomBytes } from "node:crypto";
import { chownSync, closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import type { Server, Socket } from "node:net";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { PlatformError } from "../../../contract/errors.ts";
import { EGRESS_DOOR_PORT, type Limits, PIDS_DEFAULT, PLATFORM_DOOR_PORT } from "../../driver.ts";
import { type Cgroup, createCgroup, procsFiles, removeCgroup, setCgroupLimits } from "./cgroup.ts";
import { openDoor } from "./doors.ts";
import type { Order } from "./fleet.ts";
import { RESERVED_MB } from "./launch.ts";
import { ID_COUNT } from "./launch-program.ts";
import { CAPABILITIES_MAPPED, ID_BASE_FIRST, identityFor } from "./machine.ts";
import { signal as sendSignal } from "./process-tree.ts";
import { processStart, RECORD_FORMAT, type WorkloadRecord } from "./record.ts";
import { removeTree } from "./remove-tree.ts";
import { failureOf } from "./spawner.ts";
import { Task } from "./task.ts";
import { type LeftTask, TASK_GROUPS, type TaskNote, takeOverTasks } from "./task-lives.ts";
import { TASK_FILES, type TaskPlan, TaskProgram, TIMER_SPEC_BYTES, timerSpec } from "./task-program.ts";
import { TASK_TAG, type TaskReport } from "./task-report.ts";
import { TASK_BASE, TaskSpawner } from "./task-spawner.ts";
import type { WorkloadContext } from "./workload.ts";

export interface TasksOptions {
  context: WorkloadContext;
  /** Folder of tasks alone. */
  dir: string;
  executable: string;
  /** The lowest number that neither a workload nor a slot has. */
  freeSlot(): number;
  onWarning(message: string, fields: Record<string, unknown>): void;
}

interface Slot {
  number: number;
  dir: string;
  idBase: number | null;
  cgroup: Cgroup;
  limits: Limits | null;
  oomKills: number;
  /** Of the last kind of command, which the next one likely is too. */
  program: { key: string; program: TaskProgram } | null;
}

interface Running {
  task: Task;
  slot: Slot;
  program: TaskProgram;
  start: PromiseWithResolvers<void>;
  /** Its watcher was not there at the last look; what it said may still be on its way. */
  missed: boolean;
}

const START_WAIT_MS = 30_000;
const WATCHER_LOOK_MS = 2_000;
const DOOR_SOCKET = "door.sock";
/** Of all tasks together; each has its own limit of processes, and a connection takes two. */
const DOOR_CONNECTIONS_MAX = 10_000;
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export class Tasks {
  readonly #options: TasksOptions;
  readonly #life: string;
  readonly #spawner: TaskSpawner;
  readonly #running = new Map<number, Running>();
  readonly #slots = new Map<number, Slot>();
  readonly #idle: Slot[] = [];
  readonly #cleaning = new Set<Promise<void>>();
  #door: Server | null = null;
  #ends = -1;
  #sequence = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: TasksOptions) {
    this.#options = options;
    this.#life = join(options.dir, randomBytes(6).toString("hex"));
    this.#spawner = new TaskSpawner({
      dir: this.#life,
      executable: options.executable,
      arch: options.context.machine.spawner.arch,
      onReport: (report) => this.#hear(report),
    });
  }

  /** Ends what an earlier life has left, and answers with what can still be read of it. */
  async open(): Promise<Task[]> {
    const { context, dir } = this.#options;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const left = await takeOverTasks(dir, context.machine.cgroups);
    mkdirSync(join(this.#life, "stage"), { recursive: true, mode: 0o700 });
    this.#ends = openSync(join(this.#life, "ends"), "w", 0o600);
    this.#door = await openDoor(join(this.#life, DOOR_SOCKET), (socket) => this.#greet(socket), DOOR_CONNECTIONS_MAX);
    this.#timer = setInterval(() => this.#lookForWatchers(), WATCHER_LOOK_MS).unref();
    return left.map((each) => this.#remains(each));
  }

  get slotNumbers(): number[] {
    return [...this.#slots.keys()];
  }

  async start(order: Order, signal?: AbortSignal): Promise<Task> {
    signal?.throwIfAborted();
    const slot = this.#idle.pop() ?? this.#makeSlot();
    const number = ++this.#sequence;
    const task = this.#draft(order, slot, number);
    const start = Promise.withResolvers<void>();
    let timer: NodeJS.Timeout | null = null;
    const abort = (): void => start.reject(signal?.reason);
    try {
      this.#prepare(order, slot);
      const program = this.#programFor(order, slot);
      this.#running.set(number, { task, slot, program, start, missed: false });
      const { spec, env, workDir, image } = order;
      const { argv = [], endsAtMs = null } = spec.exec ?? {};
      const note: TaskNote = { uid: spec.uid, ...(spec.log ? { log: spec.log } : {}) };
      const command = { number, note: JSON.stringify(note), endsAtMs, workDir, env: { PATH: DEFAULT_PATH, ...env } };
      this.#spawner.start(program.encode({ ...command, argv: argv.length > 0 ? argv : image.argv }));
      this.#spawner.hold(true);
      timer = setTimeout(() => start.reject(tooSlow()), START_WAIT_MS);
      signal?.addEventListener("abort", abort, { once: true });
      await start.promise;
    } catch (error) {
      if (!this.#running.has(number)) task.end(); // nothing was started
      await task.destroy(0);
      throw error;
    } finally {
      if (timer) clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
    return task;
  }

  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#spawner.stop();
    this.#door?.close();
    await Promise.all(this.#cleaning);
    if (this.#ends >= 0) closeSync(this.#ends);
    for (const { cgroup, dir } of this.#idle.splice(0)) {
      await removeCgroup(cgroup);
      await removeTree(dir);
    }
    if (this.#running.size === 0) await removeTree(this.#life);
  }

  #makeSlot(): Slot {
    const { context, freeSlot } = this.#options;
    const { grade, cgroups } = context.machine;
    const number = freeSlot();
    const dir = join(this.#life, String(number));
    mkdirSync(dir, { mode: 0o700 });
    const idBase = grade === "mapped" ? ID_BASE_FIRST + number * ID_COUNT : null;
    for (const name of [TASK_FILES.stdout, TASK_FILES.stderr]) {
      writeFileSync(join(dir, name), "", { mode: 0o600 });
      // The command may open its own output again, as /dev/stdout.
      if (idBase !== null) chownSync(join(dir, name), idBase, idBase);
    }
    const cgroup = createCgroup(cgroups, `${TASK_GROUPS}${number}`);
    const slot: Slot = { number, dir, idBase, cgroup, limits: null, oomKills: 0, program: null };
    this.#slots.set(number, slot);
    return slot;
  }

  #prepare({ spec }: Order, slot: Slot): void {
    if (isDeepStrictEqual(slot.limits, spec.limits)) return;
    slot.limits = null; // half of it may be done
    setCgroupLimits(slot.cgroup, spec.limits);
    slot.limits = spec.limits;
  }

  #draft({ spec, image, parts }: Order, slot: Slot, number: number): Task {
    const { context } = this.#options;
    const record: WorkloadRecord = {
      ...blankRecord(),
      id: `${TASK_GROUPS}${slot.number}`,
      uid: spec.uid,
      name: spec.name,
      image: image.name,
      imageDigest: image.digest,
      parts,
      network: spec.network,
      limits: spec.limits,
      mounts: spec.mounts ?? [],
      grade: context.machine.grade,
      slot: slot.number,
      idBase: slot.idBase,
      cgroup: slot.cgroup,
    };
    const hooks = {
      prolong: (endsAtMs: number): void => {
        writeSync(this.#ends, timerSpec(endsAtMs), 0, TIMER_SPEC_BYTES, slot.number * TIMER_SPEC_BYTES);
      },
      released: async (clean: boolean): Promise<void> => {
        this.#running.delete(number);
        this.#spawner.hold(this.#running.size > 0);
        if (clean) this.#idle.push(slot);
        else await this.#clean(slot);
      },
    };
    return new Task(context, slot.dir, record, hooks, slot.oomKills);
  }

  /** What the last command wrote is no part of the next one's files. */
  #clean(slot: Slot): Promise<void> {
    const cleaning = removeTree(join(slot.dir, TASK_FILES.layers))
      .then(() => void this.#idle.push(slot))
      .finally(() => this.#cleaning.delete(cleaning));
    this.#cleaning.add(cleaning);
    return cleaning;
  }

  #programFor(order: Order, slot: Slot): TaskProgram {
    const { spec, parts, mounts } = order;
    const key = JSON.stringify([
      spec.name,
      spec.network,
      spec.limits,
      spec.exec?.endsAtMs !== undefined,
      parts,
      mounts,
    ]);
    if (slot.program?.key !== key) {
      const { arch } = this.#options.context.machine.spawner;
      slot.program = { key, program: new TaskProgram(arch, TASK_BASE, this.#planOf(order, slot)) };
    }
    return slot.program.program;
  }

  #planOf({ spec, parts, mounts }: Order, slot: Slot): TaskPlan {
    const { machine, nat } = this.#options.context;
    const { limits } = machine.cgroups;
    const { version, paths } = slot.cgroup;
    const outbound = spec.network === "outbound";
    const oomFile = version === 2 ? `${paths.unified}/memory.events` : `${paths.memory}/memory.oom_control`;
    return {
      identity: identityFor(machine, slot.idBase),
      dir: slot.dir,
      stage: join(this.#life, "stage"),
      parts,
      shared: [],
      mounts,
      hostname: spec.name,
      cgroups: procsFiles(slot.cgroup),
      ...(limits.includes("memory") ? {} : { dataBytesMax: (spec.limits.memoryMb + RESERVED_MB) * 1024 * 1024 }),
      ...(limits.includes("pids") ? {} : { processesMax: spec.limits.pids ?? PIDS_DEFAULT }),
      capabilities: machine.grade === "contained" ? [] : CAPABILITIES_MAPPED,
      seccomp: machine.seccomp,
      ends: spec.exec?.endsAtMs === undefined ? null : { file: join(this.#life, "ends"), slot: slot.number },
      oomFile: limits.includes("memory") ? oomFile : null,
      doors: [
        { port: PLATFORM_DOOR_PORT, tag: TASK_TAG.platformDoor },
        ...(outbound ? [{ port: EGRESS_DOOR_PORT, tag: TASK_TAG.egressDoor }] : []),
      ],
      doorSocket: { dir: this.#life, name: DOOR_SOCKET },
      waitForNetwork: outbound && nat !== null,
    };
  }

  #hear(report: TaskReport): void {
    const running = this.#running.get(report.number);
    if (!running) return; // it was given up
    const { task, slot, start, program } = running;
    switch (report.kind) {
      case "network":
        void this.#attach(running, report.pid);
        break;
      case "processes":
        task.know(report);
        break;
      case "started":
        start.resolve();
        break;
      case "ended":
        task.end(report);
        slot.oomKills = report.oomKills;
        start.resolve();
        break;
      case "failure": {
        const what = program.names[report.step] ?? "an unknown step";
        start.reject(failureOf("The task's start", { failure: { what, errno: report.errno } }, ""));
        // Its watcher goes on after a failure of the command, and tells of its end.
        if (!report.ofCommand) task.end();
      }
    }
  }

  async #attach({ task, slot, start }: Running, pid: number): Promise<void> {
    try {
      await this.#options.context.nat?.attach(pid, slot.number);
      sendSignal(pid, "SIGUSR1");
    } catch (error) {
      start.reject(error);
      sendSignal(pid, "SIGKILL");
      task.end();
    }
  }

  /** The first record of a connection says whose it is; then it belongs to whoever serves that door. */
  #greet(socket: Socket): void {
    const hangUp = (): void => void socket.destroy();
    const read = (): void => {
      const hello = socket.read(16) as Buffer | null;
      if (!hello) return void socket.once("readable", read);
      socket.off("end", hangUp);
      const uid = this.#running.get(Number(hello.readBigInt64LE(8)))?.task.record.uid;
      if (!uid) return void socket.destroy();
      const { onDoor } = this.#options.context;
      socket.write(Buffer.alloc(1));
      onDoor[hello.toString("latin1", 0, 8) === TASK_TAG.platformDoor ? "platform" : "egress"](uid, socket);
    };
    socket.once("end", hangUp);
    read();
  }

  /** Somebody may have killed one; with it went the task. */
  #lookForWatchers(): void {
    for (const running of this.#running.values()) {
      const { task } = running;
      const { pid } = task.record.watcher;
      if (!task.alive || pid === 0 || processStart(pid) !== null) continue;
      if (running.missed) task.end();
      running.missed = true;
    }
  }

  #remains({ note, dir }: LeftTask): Task {
    const { context } = this.#options;
    const record = { ...blankRecord(), id: dir, uid: note.uid, ...(note.log ? { log: note.log } : {}) };
    const hooks = { prolong: () => {}, released: () => removeTree(dir) };
    const task = new Task(context, dir, record, hooks, 0);
    task.end();
    return task;
  }
}

const blankRecord = (): WorkloadRecord => ({
  format: RECORD_FORMAT,
  id: "",
  uid: null,
  phase: "ready",
  name: "",
  image: "",
  imageDigest: "",
  parts: [],
  network: "closed",
  limits: { memoryMb: 0, cpus: 0 },
  mounts: [],
  command: true,
  grade: "none",
  slot: -1,
  idBase: null,
  cgroup: { version: 0, paths: {} },
  pid: 0,
  startTime: "",
  watcher: { pid: 0, startTime: "" },
  pooled: false,
  createdAt: new Date().toISOString(),
});

const tooSlow = (): PlatformError => new PlatformError("unavailable", "The task did not start in time. Try again.");
