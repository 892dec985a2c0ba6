/** All processes of the sandbox that clients know: those running and those recently ended. */
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SandboxUser } from "../../contract/sandbox-wire.ts";
import { ApiError } from "../http/api-error.ts";
import { randomWord } from "../random-word.ts";
import type { Environment } from "./environment.ts";
import { ProcessJournal, type ProcessRecord } from "./journal.ts";
import { LogFile } from "./log-file.ts";
import { type KeptLog, LogKeeper } from "./log-keeper.ts";
import type { LogMirror } from "./log-mirror.ts";
import { ManagedProcess, type ProcessContext } from "./managed-process.ts";

/** Ended processes kept with their output; beyond that the oldest are removed. */
const ENDED_MAX = 500;
/** Stops a client that starts processes in a loop. A fork bomb is limited by the cgroup. */
const RUNNING_MAX = 4096;
const NAME_CHARS_MAX = 256;
const FILE_NAME_CHARS_MAX = 200; // leaves room for suffixes within the usual 255

export interface StartRequest {
  command: string;
  /** The program and its arguments; absent = the shell runs the command. */
  argv?: string[];
  /** Absent = the sandbox's own user. */
  user?: SandboxUser;
  name?: string;
  workingDir: string;
  env: Record<string, string>;
  restartOnFailure: boolean;
  maxRestarts: number;
  keepAlive: boolean;
  /** Kills the process after this time, in ms; null: never. */
  lifetimeMs: number | null;
  /** The limit shown to the caller, whether it bounds the process or the waiting for it. In seconds. */
  timeoutS?: number;
  /** Gives the process a standard input that clients write to; otherwise it is closed. */
  stdin?: boolean;
}

export class ProcessTable {
  readonly #processes: ManagedProcess[] = [];
  readonly #context: ProcessContext;
  readonly #journal: ProcessJournal;
  readonly #keeper: LogKeeper;
  readonly #logDir: () => string;
  readonly #mirror: LogMirror | null;
  readonly #extraLogs: KeptLog[];
  #lastId = 0;

  /**
   * `extraLogs`: output files of the foreground command, which init writes and only this table can keep below a limit.
   */
  constructor(options: {
    environment: Environment;
    stateDir: string;
    logDir: () => string;
    mirror: LogMirror | null;
    extraLogs: string[];
  }) {
    this.#journal = new ProcessJournal(options.stateDir);
    this.#logDir = options.logDir;
    this.#mirror = options.mirror;
    this.#extraLogs = options.extraLogs.map((path) => ({
      file: new LogFile({ path, base: 0, dropped: 0 }),
      live: true,
    }));
    this.#keeper = new LogKeeper(() => this.#logs());
    this.#context = {
      environment: options.environment,
      journal: this.#journal,
      changed: (process) => this.#journal.put(snapshot(process), () => this.#processes.map(snapshot)),
    };
    for (const record of this.#journal.load()) this.#adopt(record);
    if (this.#processes.length + this.#extraLogs.length > 0) this.#keeper.wake();
  }

  start(request: StartRequest): ManagedProcess {
    const name = request.name || `proc-${randomWord(8)}`;
    if (name.length > NAME_CHARS_MAX)
      throw new ApiError(400, `A process name has at most ${NAME_CHARS_MAX} characters.`);
    if (this.#newest(name)?.running)
      throw new ApiError(400, `A process named "${name}" already exists and is running.`);
    if (this.counts().running >= RUNNING_MAX) throw new ApiError(422, `${RUNNING_MAX} processes are running already.`);
    const started = this.#begin(name, request);
    this.#processes.push(started);
    this.forgetEnded(ENDED_MAX);
    this.#keeper.wake();
    this.#mirror?.follow(started, "first");
    return started;
  }

  list(): readonly ManagedProcess[] {
    return this.#processes;
  }

  /** Digits are a pid first. Otherwise, or when no process has that pid, the newest process of that name. */
  find(identifier: string): ManagedProcess {
    const byPid = /^\d+$/.test(identifier)
      ? this.#processes.findLast(({ record }) => String(record.pid) === identifier)
      : undefined;
    const found = byPid ?? this.#newest(identifier);
    if (!found) throw new ApiError(404, `There is no process "${identifier}".`);
    return found;
  }

  counts(): { running: number; keepAlive: number } {
    const running = this.#processes.filter((process) => process.running);
    return { running: running.length, keepAlive: running.filter(({ record }) => record.keepAlive).length };
  }

  #begin(name: string, request: StartRequest): ManagedProcess {
    this.#makeRoomFor(name);
    this.#lastId += 1;
    const base = join(this.#logDir(), fileNameOf(name, this.#lastId));
    const logs = { stdout: LogFile.create(`${base}.stdout.log`), stderr: LogFile.create(`${base}.stderr.log`) };
    const nowMs = Date.now();
    const record: ProcessRecord = {
      id: this.#lastId,
      pid: 0,
      name,
      command: request.command,
      ...(request.argv ? { argv: request.argv } : {}),
      ...(request.user ? { user: request.user } : {}),
      workingDir: request.workingDir,
      env: request.env,
      status: "running",
      run: null,
      startedAtMs: nowMs,
      completedAtMs: null,
      exitCode: 0,
      restartOnFailure: request.restartOnFailure,
      maxRestarts: request.maxRestarts,
      restartCount: 0,
      keepAlive: request.keepAlive,
      timeoutS: request.timeoutS ?? 0,
      stdin: request.stdin ?? false,
      deadlineMs: request.lifetimeMs === null ? null : nowMs + request.lifetimeMs,
      stdout: logs.stdout.position,
      stderr: logs.stderr.position,
    };
    const process = new ManagedProcess(record, logs, this.#context);
    try {
      process.start();
    } catch (error) {
      removeLogs(process);
      throw error;
    }
    return process;
  }

  /** Renames the output files of an earlier process with that name. */
  #makeRoomFor(name: string): void {
    const earlier = this.#newest(name);
    if (!earlier) return;
    for (const file of [earlier.stdout, earlier.stderr]) {
      const aside = file.path.replace(/\.(std(?:out|err)\.log)$/, `~${earlier.record.id}.$1`);
      try {
        renameSync(file.path, aside);
        file.path = aside;
      } catch {
        // A process in the sandbox removed the file; there is nothing to keep.
      }
    }
    this.#context.changed(earlier);
  }

  #newest(name: string): ManagedProcess | undefined {
    return this.#processes.findLast(({ record }) => record.name === name);
  }

  #adopt(record: ProcessRecord): void {
    this.#lastId = Math.max(this.#lastId, record.id);
    const logs = { stdout: new LogFile(record.stdout), stderr: new LogFile(record.stderr) };
    const process = new ManagedProcess(record, logs, this.#context);
    this.#processes.push(process);
    process.adopt();
    if (process.running) this.#mirror?.follow(process, "now");
  }

  /** Removes ended processes, the oldest first, until `keep` are left. */
  forgetEnded(keep = 0): void {
    let ended = this.#processes.filter((process) => !process.running).length;
    for (let i = 0; ended > keep && i < this.#processes.length; ) {
      const process = this.#processes[i];
      if (!process || process.running) {
        i += 1;
        continue;
      }
      this.#processes.splice(i, 1);
      this.#mirror?.finish(process);
      removeLogs(process);
      this.#journal.forget(process.record.id, () => this.#processes.map(snapshot));
      ended -= 1;
    }
  }

  *#logs(): Iterable<KeptLog> {
    yield* this.#extraLogs;
    for (const process of this.#processes) {
      const onTrim = (): void => this.#context.changed(process);
      yield { file: process.stdout, live: process.running, onTrim };
      yield { file: process.stderr, live: process.running, onTrim };
    }
  }
}

const snapshot = (process: ManagedProcess): ProcessRecord => ({
  ...process.record,
  stdout: process.stdout.position,
  stderr: process.stderr.position,
});

function removeLogs(process: ManagedProcess): void {
  for (const file of [process.stdout, process.stderr]) {
    file.close();
    rmSync(file.path, { force: true });
  }
}

/** Turns a free-text name into a file name. Different names give different files; a name that is cut gets the id. */
function fileNameOf(name: string, id: number): string {
  const safe = name.replace(/[^A-Za-z0-9._-]/g, (char) => `%${char.charCodeAt(0).toString(16)}`).replace(/^\./, "%2e");
  if (safe.length <= FILE_NAME_CHARS_MAX) return safe;
  return `${safe.slice(0, FILE_NAME_CHARS_MAX)}~${id}`;
}
