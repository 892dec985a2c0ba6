/** One command in a slot, without a daemon beside it. Its state is known from reports of its watcher. */

import { open } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "../../../../contract/errors.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import type { DestroyOptions } from "../../../driver.ts";
import type { Observed, Output } from "../../../workload.ts";
import { freezeCgroup, isFrozen, processesIn } from "../machine/cgroup.ts";
import { signal as sendSignal } from "../machine/process-tree.ts";
import type { WorkloadRecord } from "../workload/record.ts";
import { Workload, type WorkloadContext } from "../workload/workload.ts";
import { TASK_FILES } from "./task-program.ts";
import type { TaskReport } from "./task-report.ts";

type Ended = Omit<Extract<TaskReport, { kind: "ended" }>, "kind" | "number">;

export interface TaskHooks {
  /** Pid of the spawner, which runs in the same control groups. */
  spawner(): number;
  prolong(endsAtMs: number): void;
  /** Called when the task is destroyed. `clean`: its files are already removed. */
  released(clean: boolean): Promise<void>;
}

/** Killed processes are gone in milliseconds unless the kernel holds them in I/O. */
const END_WAIT_MS = 20_000;
const KILLED: Ended = { status: constants.signals.SIGKILL, out: -1, err: -1, clean: false, oomKills: 0 };

export class Task extends Workload {
  readonly #node: string;
  readonly #hooks: TaskHooks;
  /** OOM kills that its control group had counted before. */
  readonly #oomBefore: number;
  #end: Ended | null = null;
  readonly #ending = Promise.withResolvers<void>();
  readonly #known = Promise.withResolvers<void>();

  constructor(context: WorkloadContext, dir: string, record: WorkloadRecord, hooks: TaskHooks, oomBefore: number) {
    super(context, dir, record);
    this.#node = context.node;
    this.#hooks = hooks;
    this.#oomBefore = oomBefore;
  }

  override get alive(): boolean {
    return this.#end === null;
  }

  know({ watcher, init, command }: { watcher: number; init: number; command: number }): void {
    Object.assign(this.record, { pid: command, init, watcher: { pid: watcher, startTime: "" } });
    this.#known.resolve();
  }

  /** Called when the watcher reports the end, or is gone. */
  end(end: Ended = KILLED): void {
    this.#end ??= end;
    this.#known.resolve();
    this.#ending.resolve();
  }

  override observe(): Observed {
    const { record } = this;
    const end = this.#end;
    const signal = end ? end.status & 0x7f : 0;
    return {
      uid: record.uid ?? "",
      node: this.#node,
      state: end ? "exited" : isFrozen(record.cgroup) ? "frozen" : "running",
      grade: record.grade,
      endpoint: { kind: "unix", node: this.#node, dir: join(this.dir, "run") },
      ...(end ? {} : { pid: record.pid }),
      limits: record.limits,
      mounts: record.mounts,
      createdAt: record.createdAt,
      pooled: false,
      ...(end && signal === 0 ? { exitCode: (end.status >> 8) & 0xff } : {}),
      ...(signal === 0 ? {} : { exitSignal: SIGNAL_NAMES.get(signal) ?? String(signal) }),
      oom: (end?.oomKills ?? 0) > this.#oomBefore,
      ...(record.log ? { log: record.log } : {}),
    };
  }

  override prolong(endsAtMs: number): void {
    if (this.alive) this.#hooks.prolong(endsAtMs);
  }

  override async waitExit({ signal }: CallOptions = {}): Promise<void> {
    signal?.throwIfAborted();
    if (!signal) return this.#ending.promise;
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => aborted.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      await Promise.race([this.#ending.promise, aborted.promise]);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** After the end the watcher has reported the size, so most calls need no file: most commands write nothing. */
  override async readOutput(stream: "stdout" | "stderr", offset: number, bytesMax: number): Promise<Output> {
    const size = this.#end ? (stream === "stdout" ? this.#end.out : this.#end.err) : -1;
    if (size >= 0 && (size <= offset || bytesMax === 0)) return { bytes: Buffer.alloc(0), size };
    const file = await open(join(this.dir, TASK_FILES[stream])).catch(() => null);
    if (!file) return { bytes: Buffer.alloc(0), size: 0 };
    try {
      const stat = await file.stat();
      const length = Math.max(0, Math.min(bytesMax, stat.size - offset));
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
      return { bytes: buffer.subarray(0, bytesRead), size: stat.size };
    } finally {
      await file.close();
    }
  }

  override async destroy(graceMs: number, ended?: DestroyOptions["ended"]): Promise<void> {
    if (this.alive && graceMs > 0) await this.#askToEnd(graceMs);
    if (this.alive) await this.#kill();
    await ended?.();
    await this.#hooks.released(this.#end?.clean ?? false);
  }

  async #askToEnd(graceMs: number): Promise<void> {
    const { cgroup, watcher, init, pid } = this.#processes();
    if (isFrozen(cgroup)) await freezeCgroup(cgroup, false);
    const inside = processesIn(cgroup).filter((each) => ![watcher, init, this.#hooks.spawner()].includes(each));
    for (const each of inside.length > 0 ? inside : [-pid]) sendSignal(each, "SIGTERM");
    const timer = new AbortController();
    const patience = delay(graceMs, undefined, { signal: timer.signal, ref: false }).catch(() => {});
    await Promise.race([this.#ending.promise, patience]);
    timer.abort();
  }

  async #kill(): Promise<void> {
    const timer = new AbortController();
    const late = delay(END_WAIT_MS, "late", { signal: timer.signal, ref: false }).catch(() => "");
    // A task that is still starting has not reported its pids yet.
    await Promise.race([this.#known.promise, late]);
    const { cgroup, init } = this.#processes();
    if (this.alive && init > 0) sendSignal(init, "SIGKILL");
    if (isFrozen(cgroup)) await freezeCgroup(cgroup, false);
    const first = await Promise.race([this.#ending.promise, late]);
    timer.abort();
    if (first === "late") throw new PlatformError("internal", "The task's processes do not end.");
  }

  #processes() {
    const { cgroup, watcher, pid, init = 0 } = this.record;
    return { cgroup, pid, watcher: watcher.pid, init };
  }
}

const SIGNAL_NAMES = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));
