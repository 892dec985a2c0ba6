/**
 * Notes that running servers leave in the data folder, so that other commands find and stop them. Process ids are
 * reused, so a note also holds the start time of its process.
 */
import { spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  fchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

export interface ProcessNote {
  pid: number;
  identity: string;
  url: string;
  startedAt: string;
  /** Absent in notes of versions older than `berth upgrade`. */
  version?: string;
  /** The folder that the program runs from. */
  root?: string;
  /** After an upgrade: the process that was started first and that exits with the server. */
  attendant?: ProcessIdentity | undefined;
  /** Whether the process handles ROTATE_SIGNAL. */
  rotatesKey?: boolean;
  /** Whether the process has edge processes, and exchanges them when ROTATE_SIGNAL comes with RESTART_EDGES. */
  restartsEdges?: boolean;
}

/** Word that asks a server to exchange its edge processes; the server removes it when it has. */
export const RESTART_EDGES = "restart-edges";

/** Asks a server to do what its word says, and without one to switch to the next secret key. Ignored by default by processes that do not handle it. */
export const ROTATE_SIGNAL = "SIGURG";

export type ProcessIdentity = Pick<ProcessNote, "pid" | "identity">;

const folderOf = (dataDir: string): string => join(dataDir, "run");
const fileOf = (dataDir: string, pid: number): string => join(folderOf(dataDir), `${pid}.json`);

/** Writes the note; the returned function removes it. */
export function leaveNote(dataDir: string, about: Omit<ProcessNote, keyof ProcessIdentity>): () => void {
  mkdirSync(folderOf(dataDir), { recursive: true, mode: 0o700 });
  const note: ProcessNote = { ...ownIdentity(), ...about };
  for (const about of ["end", "edges"] as const) rmSync(wishOf(dataDir, note.pid, about), { force: true }); // left for an earlier process with this pid
  writeFileSync(fileOf(dataDir, note.pid), JSON.stringify(note), { mode: 0o600 });
  return () => rmSync(fileOf(dataDir, note.pid), { force: true });
}

export const ownIdentity = (): ProcessIdentity => ({ pid: process.pid, identity: identityOf(process.pid) ?? "" });

/** A process that stops normally removes its note; a note without its process is left from a crash. */
export const hasNote = (dataDir: string, pid: number): boolean => existsSync(fileOf(dataDir, pid));

/** What a word is about: the end of the process, or its edge processes. One must not take the place of the other. */
type WishAbout = "end" | "edges";

const WISH_FILES: Record<WishAbout, string> = { end: "wish", edges: "edges" };

const wishOf = (dataDir: string, pid: number, about: WishAbout): string =>
  join(folderOf(dataDir), `${pid}.${WISH_FILES[about]}`);

/**
 * Leaves a word for a running process, which reads it when it ends or gets a signal. Root leaves it to the owner of the folder, who may
 * have put a link there: the file is always a new one.
 */
export function leaveWish(dataDir: string, pid: number, word: string, about: WishAbout = "end"): void {
  const path = wishOf(dataDir, pid, about);
  rmSync(path, { force: true });
  const file = openSync(path, "wx", 0o600);
  try {
    const { uid, gid } = statSync(folderOf(dataDir));
    if (process.geteuid?.() === 0) fchownSync(file, uid, gid);
    writeFileSync(file, word);
  } finally {
    closeSync(file);
  }
}

/** The word that was left for a process, and is still there. */
export function wishFor(dataDir: string, pid: number, about: WishAbout = "end"): string | null {
  try {
    return readFileSync(wishOf(dataDir, pid, about), "utf8");
  } catch {
    return null;
  }
}

/** Reads and removes the word that was left for this process. */
export function takeWish(dataDir: string, about: WishAbout = "end"): string | null {
  const path = wishOf(dataDir, process.pid, about);
  if (!existsSync(path)) return null;
  const word = readFileSync(path, "utf8");
  rmSync(path);
  return word;
}

/** Notes whose process is still running; other notes are removed. */
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
    return null; // removed or half written: its server has just ended or is starting
  }
}

/** Tells this process from earlier and later ones with the same pid; null when there is no such process. */
export function identityOf(pid: number): string | null {
  if (process.platform !== "linux") {
    const began = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).stdout?.trim();
    return began ? `${pid} ${began}` : null;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The process name may contain anything, so fields are counted after it: the 1st is the state, the 20th the start
    // time.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z") return null;
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${pid} ${fields[19]}`;
  } catch {
    return null;
  }
}
