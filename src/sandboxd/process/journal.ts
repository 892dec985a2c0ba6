/**
 * The process table on disk, so that a new daemon knows the processes that an old one started. Every change appends the
 * whole record as one line; the last line of a process wins. Appending costs microseconds, rewriting the table would
 * cost milliseconds per exec; the file is rewritten only when it has grown by REWRITE_BYTES.
 *
 * Beside it, `running/<pid>` marks a live child of the daemon. When init reaps such a child as an orphan, it replaces
 * the mark with `exits/<pid>`, which holds the exit code of an adopted process.
 */
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { SandboxUser } from "../../contract/sandbox-wire.ts";
import { errnoOf } from "../http/api-error.ts";
import type { LogPosition } from "./log-file.ts";

export type ProcessStatus = "running" | "completed" | "failed" | "stopped" | "killed";

export interface ProcessRecord {
  /** Increasing number; the process's identity inside the daemon. */
  id: number;
  /** The pid that clients see: that of the first run, also after restarts. */
  pid: number;
  name: string;
  command: string;
  /** The program and its arguments; absent = the shell runs the command. */
  argv?: string[];
  /** Absent = the sandbox's own user. */
  user?: SandboxUser;
  workingDir: string;
  env: Record<string, string>;
  status: ProcessStatus;
  /** The current run, null between two runs. `startTicks` tells it from a later process with the same pid. */
  run: { pid: number; startTicks: string } | null;
  startedAtMs: number;
  completedAtMs: number | null;
  exitCode: number;
  restartOnFailure: boolean;
  /** Negative: no limit. */
  maxRestarts: number;
  restartCount: number;
  keepAlive: boolean;
  /** When the process is killed, in ms since the epoch; null: never. */
  deadlineMs: number | null;
  /** The limit in force in seconds, as in the request; 0: none. Absent in records of older daemons. */
  timeoutS?: number;
  /** The process was started with a standard input that clients write to. Absent in records of older daemons. */
  stdin?: boolean;
  stdout: LogPosition;
  stderr: LogPosition;
}

interface Forgotten {
  id: number;
  forgotten: true;
}

export interface ExitRecord {
  exitCode: number | null;
  signal: number | null;
}

const REWRITE_BYTES = 2 * 1024 * 1024; // a few thousand short commands

export class ProcessJournal {
  readonly #file: string;
  readonly #stateDir: string;
  #bytes = 0;
  #fd: number | null = null;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
    this.#file = join(stateDir, "processes.ndjson");
    for (const folder of ["running", "exits", "commands"]) mkdirSync(join(stateDir, folder), { recursive: true });
  }

  load(): ProcessRecord[] {
    let text: string;
    try {
      text = readFileSync(this.#file, "utf8");
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return [];
      throw error;
    }
    this.#bytes = text.length;
    const records = new Map<number, ProcessRecord>();
    for (const line of text.split("\n")) {
      const record = parseLine(line);
      if (record && "forgotten" in record) records.delete(record.id);
      else if (record) records.set(record.id, record);
    }
    this.#forgetExits(new Set([...records.values()].map(({ run }) => String(run?.pid))));
    return [...records.values()].sort((a, b) => a.id - b.id);
  }

  /**
   * Removes exit files that no record waits for: each would be taken for the exit of a later process with the same pid.
   */
  #forgetExits(awaited: Set<string>): void {
    const folder = join(this.#stateDir, "exits");
    for (const pid of readdirSync(folder)) if (!awaited.has(pid)) remove(join(folder, pid));
  }

  put(record: ProcessRecord, all: () => ProcessRecord[]): void {
    this.#append(JSON.stringify(record), all);
  }

  /** Drops the record and its command file. */
  forget(id: number, all: () => ProcessRecord[]): void {
    this.#append(JSON.stringify({ id, forgotten: true } satisfies Forgotten), all);
    remove(this.commandFile(id));
  }

  #append(line: string, all: () => ProcessRecord[]): void {
    this.#bytes += line.length;
    if (this.#bytes > REWRITE_BYTES) return void this.#rewrite(all());
    // Kept open: every exec writes two lines.
    this.#fd ??= openSync(this.#file, "a", 0o600);
    writeSync(this.#fd, `${line}\n`);
  }

  #rewrite(records: ProcessRecord[]): void {
    const text = records.map((record) => `${JSON.stringify(record)}\n`).join("");
    writeFileSync(`${this.#file}.new`, text, { mode: 0o600 });
    renameSync(`${this.#file}.new`, this.#file);
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
    // Counts only bytes added since: a large table must not be rewritten at every change.
    this.#bytes = 0;
  }

  /** Makes the mark a hard link to one existing file: some file systems are slow at creating many files. */
  markRunning(pid: number): void {
    const [mark, name] = [join(this.#stateDir, "mark"), join(this.#stateDir, "running", String(pid))];
    try {
      linkSync(mark, name);
    } catch {
      // The file `mark` does not exist yet, hard links are not supported, or a mark of an earlier process is left.
      writeFileSync(name, "");
      if (!existsSync(mark)) writeFileSync(mark, "");
    }
  }

  clearRunning(pid: number): void {
    remove(join(this.#stateDir, "running", String(pid)));
  }

  /** How an adopted process ended. Removes the exit file. */
  takeExit(pid: number): ExitRecord | null {
    const file = join(this.#stateDir, "exits", String(pid));
    try {
      const exit = JSON.parse(readFileSync(file, "utf8")) as ExitRecord;
      remove(file);
      return exit;
    } catch {
      return null; // not written yet
    }
  }

  /** Folder for the short-lived names of its stdin pipes. */
  get folder(): string {
    return this.#stateDir;
  }

  commandFile(id: number): string {
    return join(this.#stateDir, "commands", `${id}.sh`);
  }
}

function remove(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // Already absent.
  }
}

/** A daemon killed in the middle of a write leaves half a line behind. */
function parseLine(line: string): ProcessRecord | Forgotten | null {
  if (line === "") return null;
  try {
    return JSON.parse(line) as ProcessRecord | Forgotten;
  } catch {
    return null;
  }
}
