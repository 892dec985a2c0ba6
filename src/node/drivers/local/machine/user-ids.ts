/**
 * The user ids that one node of this machine may give to its workloads. Several nodes may run on one machine, so each
 * claims blocks of ids, in a file that all of them share. Claims end with the machine's run, as workloads do: the file
 * lies below /run.
 *
 * A block is also taken while any process has an id of the block: a server in a container with a /run of its own, or an
 * older one that makes no claims, then keeps its ids.
 */
import { accessSync, chmodSync, constants, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { PlatformError } from "../../../../contract/errors.ts";
import { ID_COUNT } from "../workload/launch-program.ts";

/** First id of the first block; ids up to 0x6fffffff are free by convention on Linux systems. */
const FIRST = 0x6000_0000;
const BLOCKS = 64;
/** Ranges of workloads in a block. */
const RANGES = 64;
/** Ranges of a block for the node itself, below the first block: one for trials, one for unpacking. */
const OWN_RANGES = 2;
const SHARED_FOLDER = "/run/berth";
const FILE = "user-ids.db";
/** A claim takes milliseconds. */
const LOCK_WAIT_MS = 30_000;

export class UserIds {
  readonly #dir: string;
  readonly #file: string;
  #blocks: number[];

  /** `dir`: the node's own folder, by which other nodes know its claims. */
  constructor(dir: string, shared = SHARED_FOLDER) {
    this.#dir = dir;
    this.#file = join(madeFolder(shared) ?? dir, FILE);
    this.#blocks = this.#transact((claims) => claims.of(dir));
    if (this.#blocks.length === 0) this.#claim(1);
  }

  /** First id of the range that the workload with this number has. */
  ofSlot(slot: number): number {
    const index = Math.floor(slot / RANGES);
    if (this.#blocks.length <= index) this.#claim(index + 1);
    return FIRST + ((this.#blocks[index] ?? 0) * RANGES + (slot % RANGES)) * ID_COUNT;
  }

  /** First id of the range for trial workloads. */
  get trial(): number {
    return this.#ownRange(0);
  }

  /** First id of the range for jobs that unpack archives. */
  get unpack(): number {
    return this.#ownRange(1);
  }

  /** Gives the blocks back; for a node that leaves no workload behind. */
  release(): void {
    this.#transact((claims) => claims.forget(this.#dir));
    this.#blocks = [];
  }

  #ownRange(number: number): number {
    return FIRST - ((this.#blocks[0] ?? 0) * OWN_RANGES + number + 1) * ID_COUNT;
  }

  /** Claims free blocks, lowest first, until the node has as many. */
  #claim(count: number): void {
    this.#blocks = this.#transact((claims) => {
      const taken = new Set([...claims.held(), ...blocksOfProcesses()]);
      const free = Array.from({ length: BLOCKS }, (_, block) => block).filter((block) => !taken.has(block));
      const wanted = free.slice(0, count - this.#blocks.length);
      if (wanted.length < count - this.#blocks.length)
        throw new PlatformError("unavailable", "Every user id for workloads is in use on this machine.");
      for (const block of wanted) claims.add(block, this.#dir);
      return claims.of(this.#dir);
    });
  }

  #transact<T>(work: (claims: Claims) => T): T {
    const database = new DatabaseSync(this.#file, { timeout: LOCK_WAIT_MS });
    try {
      chmodSync(this.#file, 0o600); // whoever may read the file may lock it
      database.exec("BEGIN IMMEDIATE");
      const result = work(new Claims(database));
      database.exec("COMMIT");
      return result;
    } finally {
      database.close();
    }
  }
}

/** One row for each block that a node has claimed, in the order of the claims. */
class Claims {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
    database.exec(
      "CREATE TABLE IF NOT EXISTS claims (number INTEGER PRIMARY KEY, block INTEGER UNIQUE, dir TEXT, inode TEXT)",
    );
  }

  of(dir: string): number[] {
    return this.#rows()
      .filter((row) => row.dir === dir && row.inode === inodeOf(dir))
      .map(({ block }) => block);
  }

  /** All claimed blocks. Forgets those of folders that are gone. */
  held(): number[] {
    for (const { dir, inode } of this.#rows()) if (inodeOf(dir) !== inode) this.forget(dir);
    return this.#rows().map(({ block }) => block);
  }

  add(block: number, dir: string): void {
    this.#database.prepare("INSERT INTO claims (block, dir, inode) VALUES (?, ?, ?)").run(block, dir, inodeOf(dir));
  }

  forget(dir: string): void {
    this.#database.prepare("DELETE FROM claims WHERE dir = ?").run(dir);
  }

  #rows(): { block: number; dir: string; inode: string }[] {
    const rows = this.#database.prepare("SELECT block, dir, inode FROM claims ORDER BY number").all();
    return rows.map(({ block, dir, inode }) => ({ block: Number(block), dir: String(dir), inode: String(inode) }));
  }
}

/** Null where the folder cannot be written: the node then sees other nodes only by their processes. */
function madeFolder(path: string): string | null {
  try {
    mkdirSync(path, { recursive: true, mode: 0o755 });
    accessSync(path, constants.W_OK);
    return path;
  } catch {
    return null;
  }
}

/** Tells a folder from a later one with the same path; empty when there is none. */
function inodeOf(dir: string): string {
  const stats = statSync(dir, { throwIfNoEntry: false, bigint: true });
  return stats ? `${stats.dev}:${stats.ino}:${stats.birthtimeNs}` : "";
}

function blocksOfProcesses(): Set<number> {
  const blocks = new Set<number>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const id = Number(/^Uid:\s+(\d+)/m.exec(statusOf(pid))?.[1] ?? 0);
    if (id >= FIRST) blocks.add(Math.floor((id - FIRST) / (ID_COUNT * RANGES)));
  }
  return blocks;
}

function statusOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return ""; // the process has ended
  }
}
