/** Walking a folder tree for the searches: breadth first, bounded, and with pauses for other requests. */
import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { type BytePath, fromBytes, joinPath, toBytes, toText } from "../files/byte-path.ts";

export const EXCLUDED_FOLDERS = [
  "node_modules",
  "vendor",
  ".git",
  "dist",
  "build",
  "target",
  "__pycache__",
  ".venv",
  ".next",
  "coverage",
];

/** Most entries one search visits; it skips the rest. */
const ENTRIES_MAX = 2_000_000;
const ENTRIES_PER_TURN = 1000;

export interface Walked {
  path: BytePath;
  /** Path relative to the root of the walk, as text. */
  relative: string;
  name: string;
  type: "file" | "directory" | "other";
}

export interface WalkOptions {
  excludeFolders: Set<string>;
  excludeHidden: boolean;
  signal: AbortSignal;
}

/** Yields a folder before its entries. Symbolic links are yielded as files and never followed. */
export async function* walk(root: BytePath, options: WalkOptions): AsyncGenerator<Walked> {
  const todo: { path: BytePath; relative: string }[] = [{ path: root, relative: "" }];
  let looked = 0;
  for (let folder = todo.shift(); folder && !options.signal.aborted; folder = todo.shift()) {
    for (const name of namesIn(folder.path)) {
      looked += 1;
      if (looked > ENTRIES_MAX) return;
      if (looked % ENTRIES_PER_TURN === 0) await breathe();
      const text = toText(name);
      if (options.excludeHidden && text.startsWith(".")) continue;
      const path = joinPath(folder.path, name);
      const relative = folder.relative === "" ? text : `${folder.relative}/${text}`;
      const type = typeOf(path);
      if (type === "directory") {
        if (options.excludeFolders.has(text)) continue;
        todo.push({ path, relative });
      }
      yield { path, relative, name: text, type };
    }
  }
}

function namesIn(folder: BytePath): BytePath[] {
  try {
    return readdirSync(toBytes(folder), { encoding: "buffer" }).map(fromBytes).sort();
  } catch {
    return []; // the folder was removed, or the daemon may not read it
  }
}

function typeOf(path: BytePath): Walked["type"] {
  try {
    const stats: Pick<Dirent, "isFile" | "isDirectory" | "isSymbolicLink"> = lstatSync(toBytes(path));
    if (stats.isDirectory()) return "directory";
    return stats.isFile() || stats.isSymbolicLink() ? "file" : "other";
  } catch {
    return "other";
  }
}
