/** A repository in a folder of this machine, or of a share that is mounted there. */
import { link, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { randomWord } from "../../../lib/ids.ts";
import { OBJECT_BYTES_MAX, type Place } from "./place.ts";

/** Files that are still written; no key begins with a dot. */
const DRAFT = ".draft-";

export function folderPlace(target: string): Place {
  const root = resolve(target);
  const pathOf = (key: string): string => join(root, key);

  /** Gives the file its name once its bytes are on the disk. */
  async function write(key: string, bytes: Buffer, name: (draft: string, path: string) => Promise<void>) {
    const path = pathOf(key);
    const draft = join(dirname(path), `${DRAFT}${randomWord(12)}`);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    try {
      const file = await open(draft, "wx", 0o600);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await name(draft, path);
    } finally {
      await rm(draft, { force: true });
    }
  }

  return {
    shown: root,
    put: (key, bytes) => write(key, bytes, rename),
    putNew: (key, bytes) =>
      write(key, bytes, link).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code === "EEXIST") return false;
          throw error;
        },
      ),
    async get(key) {
      try {
        const { size } = await stat(pathOf(key));
        if (size > OBJECT_BYTES_MAX) return Buffer.alloc(0); // nothing that a backup wrote: told as damaged
        return await readFile(pathOf(key));
      } catch (error) {
        if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
        throw error;
      }
    },
    list: (prefix) => filesBelow(root, prefix.replace(/\/$/, "")),
    remove: (key) => rm(pathOf(key), { force: true }),
  };
}

async function* filesBelow(root: string, key: string): AsyncGenerator<string> {
  const entries = await readdir(join(root, key), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  for (const entry of entries) {
    if (entry.name.startsWith(".")) continue;
    if (entry.isDirectory()) yield* filesBelow(root, `${key}/${entry.name}`);
    else if (entry.isFile()) yield `${key}/${entry.name}`;
  }
}
