/**
 * Commands that run without a daemon: tasks of jobs. Each has a slot while it runs (a folder, control groups, a range
 * of ids) and new namespaces, files and network. Slots are reused, since making control groups and folders costs as
 * much as all the rest.
 */
import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import type { Server, Socket } from "node:net";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { Limits } from "../../../workload.ts";
import { openDoor } from "../../common/doors.ts";
import { failureOf } from "../calls/spawner.ts";
import { procsFiles, removeCgroup } from "../machine/cgroup.ts";
import { signal as sendSignal } from "../machine/process-tree.ts";
import type { Order } from "../workload/order.ts";
import { processStart, RECORD_FORMAT, type WorkloadRecord } from "../workload/record.ts";
import type { WorkloadContext } from "../workload/workload.ts";
import { Task } from "./task.ts";
import { type LeftTask, TASK_GROUPS, type TaskNote, takeOverTasks } from "./task-lives.ts";
import { DOOR_SOCKET, ENDS_FILE, makeTaskSlot, setSlotLimits, type TaskSlot, taskPlan } from "./task-plan.ts";
import { TASK_FILES, TaskProgram, TIMER_SPEC_BYTES, timerSpec } from "./task-program.ts";
import { TASK_TAG, type TaskReport } from "./task-report.ts";
import { TASK_BASE, TaskSpawner } from "./task-spawner.ts";

export interface TasksOptions {
  context: WorkloadContext;
  /** Folder that only tasks use. */
  dir: string;
  executable: string;
  /** The lowest number that no workload and no slot uses. */
  freeSlot(): number;
  onWarning(message: string, fields: Record<string, unknown>): void;
}

interface Running {
  task: Task;
  slot: TaskSlot;
  program: TaskProgram;
  start: PromiseWithResolvers<void>;
  /** The watcher was gone at the last check; its report may still be on the way. */
  missed: boolean;
}

const START_WAIT_MS = 30_000;
const WATCHER_LOOK_MS = 2_000;
/**
 * Most door connections of all tasks together. Each task is also bound by its process limit: a connection takes two.
 */
const DOOR_CONNECTIONS_MAX = 10_000;
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export class Tasks {
  readonly #options: TasksOptions;
  readonly #life: string;
  readonly #spawners = new Map<TaskSlot, TaskSpawner>();
  readonly #running = new Map<number, Running>();
  readonly #slots = new Map<number, TaskSlot>();
  readonly #idle: TaskSlot[] = [];
  readonly #cleaning = new Set<Promise<void>>();
  #door: Server | null = null;
  #ends = -1;
  #sequence = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: TasksOptions) {
    this.#options = options;
    this.#life = join(options.dir, randomBytes(6).toString("hex"));
  }

  /** Ends tasks of earlier runs of the server and returns those whose output can still be read. */
  async open(): Promise<Task[]> {
    const { context, dir } = this.#options;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const left = await takeOverTasks(dir, context.machine.cgroups);
    mkdirSync(this.#life, { recursive: true, mode: 0o700 });
    this.#ends = openSync(join(this.#life, ENDS_FILE), "w", 0o600);
    this.#door = await openDoor(join(this.#life, DOOR_SOCKET), (socket) => this.#greet(socket), DOOR_CONNECTIONS_MAX);
    this.#timer = setInterval(() => this.#lookForWatchers(), WATCHER_LOOK_MS).unref();
    return left.map((each) => this.#remains(each));
  }

  get slotNumbers(): number[] {
    return [...this.#slots.keys()];
  }

  async start(order: Order, signal?: AbortSignal): Promise<Task> {
    signal?.throwIfAborted();
    const { limits } = order.spec;
    const slot = this.#idle.pop() ?? this.#makeSlot(limits);
    const number = ++this.#sequence;
    const task = this.#draft(order, slot, number);
    const start = Promise.withResolvers<void>();
    let timer: NodeJS.Timeout | null = null;
    const abort = (): void => start.reject(signal?.reason);
    try {
      setSlotLimits(slot, limits);
      const program = this.#programFor(order, slot);
      this.#running.set(number, { task, slot, program, start, missed: false });
      const { spec, env, workDir, image } = order;
      const { argv = [], endsAtMs = null } = spec.exec ?? {};
      const note: TaskNote = { uid: spec.uid, ...(spec.log ? { log: spec.log } : {}) };
      const command = { number, note: JSON.stringify(note), endsAtMs, workDir, env: { PATH: DEFAULT_PATH, ...env } };
      const spawner = this.#spawners.get(slot);
      spawner?.start(program.encode({ ...command, argv: argv.length > 0 ? argv : image.argv }));
      spawner?.hold(true);
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
    await Promise.all([...this.#spawners.values()].map((spawner) => spawner.stop()));
    this.#door?.close();
    await Promise.all(this.#cleaning);
    if (this.#ends >= 0) closeSync(this.#ends);
    for (const { cgroup, dir } of this.#idle.splice(0)) {
      await removeCgroup(cgroup);
      await removeTree(dir);
    }
    if (this.#running.size === 0) await removeTree(this.#life);
  }

  #makeSlot(limits: Limits): TaskSlot {
    const { context, freeSlot, executable } = this.#options;
    const slot = makeTaskSlot(context.machine, this.#life, freeSlot(), limits);
    const spawner = new TaskSpawner({
      dir: this.#life,
      executable,
      arch: context.machine.spawner.arch,
      cgroups: procsFiles(slot.cgroup),
      onReport: (report) => this.#hear(report),
    });
    this.#spawners.set(slot, spawner);
    this.#slots.set(slot.number, slot);
    return slot;
  }

  #draft({ spec, image, parts }: Order, slot: TaskSlot, number: number): Task {
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
      ...(spec.log ? { log: spec.log } : {}),
    };
    const spawner = this.#spawners.get(slot);
    const hooks = {
      spawner: () => spawner?.pid ?? 0,
      prolong: (endsAtMs: number): void => {
        writeSync(this.#ends, timerSpec(endsAtMs), 0, TIMER_SPEC_BYTES, slot.number * TIMER_SPEC_BYTES);
      },
      released: async (clean: boolean): Promise<void> => {
        this.#running.delete(number);
        spawner?.hold(false);
        if (clean) this.#idle.push(slot);
        else await this.#clean(slot);
      },
    };
    return new Task(context, slot.dir, record, hooks, slot.oomKills);
  }

  /** Removes the files of the last command before the slot is used again. */
  #clean(slot: TaskSlot): Promise<void> {
    const cleaning = removeTree(join(slot.dir, TASK_FILES.layers))
      .then(() => void this.#idle.push(slot))
      .finally(() => this.#cleaning.delete(cleaning));
    this.#cleaning.add(cleaning);
    return cleaning;
  }

  #programFor(order: Order, slot: TaskSlot): TaskProgram {
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
      const { machine, nat } = this.#options.context;
      const plan = taskPlan({ machine, nat, dir: this.#life }, order, slot);
      slot.program = { key, program: new TaskProgram(machine.spawner.arch, TASK_BASE, plan) };
    }
    return slot.program.program;
  }

  #hear(report: TaskReport): void {
    const running = this.#running.get(report.number);
    if (!running) return; // the start was given up
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
        // After a failure of the command its watcher goes on and reports the end.
        if (!report.ofCommand) task.end();
      }
    }
  }

  async #attach({ task, slot, start }: Running, pid: number): Promise<void> {
    try {
      const { nat } = this.#options.context;
      await nat?.attach(pid, slot.number);
      if (task.record.uid !== null) nat?.own(slot.number, task.record.uid, pid);
      sendSignal(pid, "SIGUSR1");
    } catch (error) {
      start.reject(error);
      sendSignal(pid, "SIGKILL");
      task.end();
    }
  }

  /** Reads which task and door a connection belongs to, then hands it to that door's handler. */
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

  /** Ends tasks whose watcher was killed: the kernel killed the task with it. */
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
    const hooks = { spawner: () => 0, prolong: () => {}, released: () => removeTree(dir) };
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
