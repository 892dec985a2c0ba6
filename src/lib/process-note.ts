/**
 * Notes that running servers leave in the data folder, so that another command finds and stops them. A number of a
 * process is used again after its end, so a note also holds when the process began.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface ProcessNote {
  pid: number;
  identity: string;
  url: string;
  startedAt: string;
  /** Absent in notes of versions that do not know `berth upgrade`. */
  version?: string;
  /** The folder that the program runs from. */
  root?: string;
  /** The process that was started first and that ends with the server, after an upgrade. */
  attendant?: ProcessIdentity | undefined;
  /** The process takes ROTATE_SIGNAL. */
  rotatesKey?: boolean;
}

/** Asks a server to go over to the next secret key. A process that does not know the signal ignores it. */
export const ROTATE_SIGNAL = "SIGURG";

export type ProcessIdentity = Pick<ProcessNote, "pid" | "identity">;

const folderOf = (dataDir: string): string => join(dataDir, "run");
const fileOf = (dataDir: string, pid: number): string => join(folderOf(dataDir), `${pid}.json`);

/** The returned function takes the note away. */
export function leaveNote(dataDir: string, about: Omit<ProcessNote, keyof ProcessIdentity>): () => void {
  mkdirSync(folderOf(dataDir), { recursive: true, mode: 0o700 });
  const note: ProcessNote = { ...ownIdentity(), ...about };
  rmSync(wishOf(dataDir, note.pid), { force: true }); // of an earlier process with this number
  writeFileSync(fileOf(dataDir, note.pid), JSON.stringify(note), { mode: 0o600 });
  return () => rmSync(fileOf(dataDir, note.pid), { force: true });
}

export const ownIdentity = (): ProcessIdentity => ({ pid: process.pid, identity: identityOf(process.pid) ?? "" });

/** A process that stops by itself takes its note away; a note without its process is one of a crash. */
export const hasNote = (dataDir: string, pid: number): boolean => existsSync(fileOf(dataDir, pid));

const wishOf = (dataDir: string, pid: number): string => join(folderOf(dataDir), `${pid}.wish`);

/** Leaves a word for a running process, to be read when it ends. */
export function leaveWish(dataDir: string, pid: number, word: string): void {
  writeFileSync(wishOf(dataDir, pid), word, { mode: 0o600 });
}

/** The word that was left for this process, once. */
export function takeWish(dataDir: string): string | null {
  const path = wishOf(dataDir, process.pid);
  if (!existsSync(path)) return null;
  const word = readFileSync(path, "utf8");
  rmSync(path);
  return word;
}

/** Those whose process is still there; notes of others are removed. */
export function runningNotes(dataDir: string): ProcessNote[] {
  if (!existsSync(folderOf(dataDir))) return [];
  const names = readdirSync(folderOf(dataDir)).filter((name) => /^\d+\.json$/.test(name));
  return names.flatMap((name) => {
    const path = join(folderOf(dataDir), name);
    const note = parse(path);
    if (note && isRunning(note)) return [note];
    rmSync(path, { force: true });
    return [];
  });
}

export const isRunning = ({ pid, identity }: ProcessIdentity): boolean =>
  identity !== "" && identityOf(pid) === identity;

function parse(path: string): ProcessNote | null {
  try {
    const note = JSON.parse(readFileSync(path, "utf8")) as ProcessNote;
    return Number.isSafeInteger(note.pid) && note.pid > 1 && typeof note.identity === "string" ? note : null;
  } catch {
    return null; // taken away or half written: its server is starting or has just ended
  }
}

/** What tells this process from any other that has, had or will have its number; null when there is none. */
export function identityOf(pid: number): string | null {
  if (process.platform !== "linux") {
    const began = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).stdout?.trim();
    return began ? `${pid} ${began}` : null;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // After the name, which may contain anything: the state is the first field, the start time the twentieth.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z") return null;
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${pid} ${fields[19]}`;
  } catch {
    return null;
  }
}
