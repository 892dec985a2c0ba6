/**
 * The process table on disk, so that a new daemon knows what an old one started. Every change appends the whole record
 * as one line; the last line of a process wins. Appending costs microseconds where rewriting a table would cost
 * milliseconds per exec; the file is rewritten when it has grown.
 *
 * Beside it: `running/<pid>` marks a live child of the daemon, and init turns the mark of an orphan it reaps into
 * `exits/<pid>`, which is how the exit code of an adopted process is known.
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
import { errnoOf } from "../http/api-error.ts";
import type { LogPosition } from "./log-file.ts";

export type ProcessStatus = "running" | "completed" | "failed" | "stopped" | "killed";

export interface ProcessRecord {
  /** Counts up; the process's identity inside the daemon. */
  id: number;
  /** The pid clients see: that of the first run, whatever restarts follow. */
  pid: number;
  name: string;
  command: string;
  workingDir: string;
  env: Record<string, string>;
  status: ProcessStatus;
  /** The run under way, null between two runs. `startTicks` tells it from a later process with the same pid. */
  run: { pid: number; startTicks: string } | null;
  startedAtMs: number;
  completedAtMs: number | null;
  exitCode: number;
  restartOnFailure: boolean;
  /** Negative: without limit. */
  maxRestarts: number;
  restartCount: number;
  keepAlive: boolean;
  /** When it is to be killed; null: never. */
  deadlineMs: number | null;
  /** The limit in force, in seconds and with the meaning that it has in the request; 0: none. Absent in older records. */
  timeoutS?: number;
  /** It was started with a standard input that clients write to. Absent in records of older daemons. */
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

const REWRITE_BYTES = 2 * 1024 * 1024; // some thousand ends of short commands

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

  /** Notes about processes that no record waits for would be taken for the end of a later one with the same pid. */
  #forgetExits(awaited: Set<string>): void {
    const folder = join(this.#stateDir, "exits");
    for (const pid of readdirSync(folder)) if (!awaited.has(pid)) remove(join(folder, pid));
  }

  put(record: ProcessRecord, all: () => ProcessRecord[]): void {
    this.#append(JSON.stringify(record), all);
  }

  /** The record is gone, and with it its claim to the files it names. */
  forget(id: number, all: () => ProcessRecord[]): void {
    this.#append(JSON.stringify({ id, forgotten: true } satisfies Forgotten), all);
    remove(this.commandFile(id));
  }

  #append(line: string, all: () => ProcessRecord[]): void {
    this.#bytes += line.length;
    if (this.#bytes > REWRITE_BYTES) return void this.#rewrite(all());
    // Held open: two lines are written for every exec.
    this.#fd ??= openSync(this.#file, "a", 0o600);
    writeSync(this.#fd, `${line}\n`);
  }

  #rewrite(records: ProcessRecord[]): void {
    const text = records.map((record) => `${JSON.stringify(record)}\n`).join("");
    writeFileSync(`${this.#file}.new`, text, { mode: 0o600 });
    renameSync(`${this.#file}.new`, this.#file);
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
    // Counted from here: a table that is large by itself must not be rewritten at every change.
    this.#bytes = 0;
  }

  /** A name more for a file that is there: cheaper than a file, of which some file systems are slow to make many. */
  markRunning(pid: number): void {
    const [mark, name] = [join(this.#stateDir, "mark"), join(this.#stateDir, "running", String(pid))];
    try {
      linkSync(mark, name);
    } catch {
      // No mark yet, no links here, or the name of an earlier one is left.
      writeFileSync(name, "");
      if (!existsSync(mark)) writeFileSync(mark, "");
    }
  }

  clearRunning(pid: number): void {
    remove(join(this.#stateDir, "running", String(pid)));
  }

  /** How an adopted process ended, told once. */
  takeExit(pid: number): ExitRecord | null {
    const file = join(this.#stateDir, "exits", String(pid));
    try {
      const exit = JSON.parse(readFileSync(file, "utf8")) as ExitRecord;
      remove(file);
      return exit;
    } catch {
      return null; // not there yet
    }
  }

  /** Where its pipes have their names for a moment. */
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
    // Not there, which is what was wanted.
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
