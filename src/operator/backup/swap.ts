/**
 * Puts restored files in the place of those that are there, so that it can be undone at any moment: what was there is
 * moved aside first, and a file says so from before the first move until the end.
 *
 *   restoring/files/    what a backup brought
 *   restoring/before/   what was there
 *   restoring/swap      which of them were there; see `lockDataFolder`
 */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { removeTree } from "../../lib/remove-tree.ts";
import { NODE_FILE } from "../../node/identity.ts";
import { RESTORING, SWAP_FILE } from "../../store/database/data-lock.ts";

const ENTRIES = ["runtime", "blobs", NODE_FILE] as const;

export class Swap {
  readonly staged: string;
  readonly #dataDir: string;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
    this.staged = join(dataDir, RESTORING);
  }

  /** Brings back what an interrupted swap had moved aside. Returns whether there was one. */
  async undo(): Promise<boolean> {
    const note = join(this.#dataDir, SWAP_FILE);
    const wasBegun = existsSync(note);
    if (wasBegun) {
      const had = JSON.parse(readFileSync(note, "utf8")) as string[];
      for (const entry of ENTRIES) {
        const [place, before] = [join(this.#dataDir, entry), join(this.staged, "before", entry)];
        if (had.includes(entry) && !existsSync(before)) continue; // it was not moved yet
        await removeTree(place);
        if (had.includes(entry)) renameSync(before, place);
      }
    }
    await removeTree(this.staged);
    return wasBegun;
  }

  async begin(node: { id: string; name: string }): Promise<void> {
    const files = join(this.staged, "files");
    mkdirSync(join(this.staged, "before"), { recursive: true, mode: 0o700 });
    mkdirSync(files, { recursive: true, mode: 0o700 });
    writeDurably(join(files, NODE_FILE), `${JSON.stringify(node, null, 2)}\n`);
    const had = ENTRIES.filter((entry) => existsSync(join(this.#dataDir, entry)));
    writeDurably(join(this.#dataDir, SWAP_FILE), JSON.stringify(had));
    for (const entry of ENTRIES) {
      const place = join(this.#dataDir, entry);
      if (had.includes(entry)) renameSync(place, join(this.staged, "before", entry));
      if (existsSync(join(files, entry))) renameSync(join(files, entry), place);
    }
  }

  /** What was there before is gone from here on. */
  async finish(): Promise<void> {
    await removeTree(join(this.#dataDir, SWAP_FILE));
    await removeTree(this.staged);
  }
}

function writeDurably(path: string, text: string): void {
  const file = openSync(path, "w", 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
