/**
 * One process that a client has started. Modes:
 *
 *   running                 a child exists, or the pause before its next restart
 *   completed | failed      it ended by itself (exit code 0, or not)
 *   stopped | killed        a client ended it, or its time was up
 *
 * `end` is the only way out of running, and it happens once.
 */
import { statSync, writeFileSync, writeSync } from "node:fs";
import type { Child } from "../bun.ts";
import { ApiError } from "../http/api-error.ts";
import type { Environment } from "./environment.ts";
import { spawnExpendable } from "./expendable.ts";
import type { ExitRecord, ProcessJournal, ProcessRecord, ProcessStatus } from "./journal.ts";
import type { LogFile } from "./log-file.ts";
import { StdinPipe } from "./stdin-pipe.ts";
import { isAlive, statOf } from "./tree.ts";

const RESTART_PAUSE_MS = 1000;
/** How often an adopted process is checked: it is not a child of this daemon, so no exit event comes. */
const ADOPTED_LOOK_MS = 100;
/** init writes the exit record right after the process vanishes; after this many checks it will not come. */
const ADOPTED_LOOKS_AFTER_VANISHING = 20;
/** The kernel limits one argument to 128 KiB; a longer command is run from a file. */
const ARGUMENT_BYTES_MAX = 120 * 1024;

export interface ProcessContext {
  environment: Environment;
  journal: ProcessJournal;
  /** The record has changed and must be written down. */
  changed(process: ManagedProcess): void;
}

export class ManagedProcess {
  readonly record: ProcessRecord;
  readonly stdout: LogFile;
  readonly stderr: LogFile;
  readonly #context: ProcessContext;
  /** Null when standard input was not requested, or the process was started by an earlier daemon. */
  #stdin: StdinPipe | null = null;
  #timers = new Set<NodeJS.Timeout>();
  /** The status that the process will get once it is gone, after a client asked for its end. */
  #requested: "stopped" | "killed" | null = null;
  #waiters = new Set<() => void>();

  constructor(record: ProcessRecord, logs: { stdout: LogFile; stderr: LogFile }, context: ProcessContext) {
    this.record = record;
    this.stdout = logs.stdout;
    this.stderr = logs.stderr;
    this.#context = context;
  }

  get running(): boolean {
    return this.record.status === "running";
  }

  get stdin(): StdinPipe | null {
    return this.#stdin;
  }

  /** Starts the first run. On failure throws the error for the caller of exec and leaves nothing behind. */
  start(): void {
    this.#run();
    this.record.pid = this.record.run?.pid ?? 0;
    this.#armDeadline();
    this.#context.changed(this);
  }

  /** Takes over a process that an earlier daemon started. */
  adopt(): void {
    const { run } = this.record;
    if (!this.running) return;
    this.#armDeadline();
    if (run) this.#watchAdopted(run.pid, run.startTicks, 0);
    else this.#restartSoon();
  }

  /** Sends SIGTERM or SIGKILL to the whole process group. False when the process is not running. */
  signal(signal: "SIGTERM" | "SIGKILL"): boolean {
    if (!this.running) return false;
    this.#requested = signal === "SIGTERM" ? "stopped" : "killed";
    const { run } = this.record;
    if (!run) this.#end(this.#requested, -1);
    else signalGroup(run.pid, signal);
    return true;
  }

  /** Resolves true at the final end, false when the abort signal or the timeout came first. */
  ended(options: { signal: AbortSignal; timeoutMs: number | null }): Promise<boolean> {
    if (!this.running) return Promise.resolve(true);
    return new Promise((resolve) => {
      const settle = (ended: boolean): void => {
        this.#waiters.delete(onEnd);
        options.signal.removeEventListener("abort", onAbort);
        clearTimeout(timer);
        resolve(ended);
      };
      const onEnd = (): void => settle(true);
      const onAbort = (): void => settle(false);
      const timer = options.timeoutMs === null ? undefined : setTimeout(onAbort, options.timeoutMs);
      this.#waiters.add(onEnd);
      options.signal.addEventListener("abort", onAbort);
    });
  }

  /** Writes a line of the daemon into the process's output. */
  note(text: string): void {
    writeSync(this.stdout.fd, `[${text}]\n`);
  }

  #run(): void {
    const { record } = this;
    const { environment, journal } = this.#context;
    checkFolder(record.workingDir);
    const user = record.user ?? environment.user;
    const spawn = (stdin: "ignore" | number): Child =>
      spawnExpendable(environment, this.#argv(), {
        cwd: record.workingDir,
        env: environment.variables(record.env),
        stdio: [stdin, this.stdout.fd, this.stderr.fd],
        detached: true,
        ...(user ? { uid: user.uid, gid: user.gid } : {}),
        onExit: (ended, exitCode) => this.#onExit({ exitCode: ended.signalCode ? null : exitCode, signal: null }),
      });
    let child: Child | undefined;
    try {
      if (!record.stdin) child = spawn("ignore");
      else
        this.#stdin = StdinPipe.around(journal.folder, (fd) => {
          child = spawn(fd);
        });
      if (!child) throw new Error("it was not started");
    } catch (error) {
      throw new ApiError(422, `The command could not be started: ${error instanceof Error ? error.message : error}`);
    }
    record.run = { pid: child.pid, startTicks: statOf(child.pid)?.startTicks ?? "0" };
    journal.markRunning(child.pid);
  }

  #argv(): string[] {
    const { shell } = this.#context.environment;
    const { argv, command, id } = this.record;
    if (argv) return argv;
    if (Buffer.byteLength(command) <= ARGUMENT_BYTES_MAX) return [...shell, command];
    const file = this.#context.journal.commandFile(id);
    writeFileSync(file, command, { mode: 0o755 });
    return [shell[0] ?? "sh", file];
  }

  #onExit(exit: ExitRecord): void {
    const { record } = this;
    if (record.run) this.#context.journal.clearRunning(record.run.pid);
    record.run = null;
    this.#stdin?.drop();
    this.#stdin = null;
    const exitCode = exit.exitCode ?? -1;
    const mayRestart = record.maxRestarts < 0 || record.restartCount < record.maxRestarts;
    const restarts = record.restartOnFailure && mayRestart && exitCode !== 0 && !this.#requested;
    if (!restarts) {
      this.#end(this.#requested ?? (exitCode === 0 ? "completed" : "failed"), exitCode);
      return;
    }
    record.exitCode = exitCode;
    record.restartCount += 1;
    const limit = record.maxRestarts < 0 ? "no limit" : `of ${record.maxRestarts}`;
    this.note(`exited with code ${exitCode}; restart ${record.restartCount} (${limit})`);
    this.#context.changed(this);
    this.#restartSoon();
  }

  #restartSoon(): void {
    this.#later(RESTART_PAUSE_MS, () => {
      try {
        this.#run();
        this.#context.changed(this);
      } catch (error) {
        this.note(error instanceof Error ? error.message : String(error));
        this.#end("failed", this.record.exitCode);
      }
    });
  }

  #watchAdopted(pid: number, startTicks: string, looksAfterVanishing: number): void {
    const noted = this.#context.journal.takeExit(pid);
    const gone = !isAlive(pid, startTicks);
    if (noted || (gone && looksAfterVanishing >= ADOPTED_LOOKS_AFTER_VANISHING)) {
      // Without init as parent the exit code is unknown: -1, as for a death by signal.
      this.#onExit(noted ?? { exitCode: null, signal: null });
      return;
    }
    this.#later(ADOPTED_LOOK_MS, () => this.#watchAdopted(pid, startTicks, gone ? looksAfterVanishing + 1 : 0));
  }

  #armDeadline(): void {
    const { deadlineMs } = this.record;
    if (deadlineMs === null) return;
    const DELAY_MAX_MS = 2 ** 31 - 1; // the longest delay of a timer; a longer one is armed again
    const leftMs = deadlineMs - Date.now();
    this.#later(Math.min(Math.max(leftMs, 0), DELAY_MAX_MS), () => {
      if (leftMs > DELAY_MAX_MS) return this.#armDeadline();
      this.note("its time is up; killed");
      this.signal("SIGKILL");
    });
  }

  #end(status: Exclude<ProcessStatus, "running">, exitCode: number): void {
    const { record } = this;
    if (!this.running) return;
    record.status = status;
    record.exitCode = exitCode;
    record.completedAtMs = Date.now();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#context.changed(this);
    for (const waiter of [...this.#waiters]) waiter();
  }

  #later(delayMs: number, then: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      then();
    }, delayMs);
    this.#timers.add(timer);
  }
}

export function checkFolder(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) throw new ApiError(422, `The working directory ${path} does not exist.`);
  if (!stats.isDirectory()) throw new ApiError(422, `The working directory ${path} is not a directory.`);
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The process is gone; its exit event is on the way.
  }
}
