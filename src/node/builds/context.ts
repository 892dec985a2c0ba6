/**
 * The files that were sent for a build, without those that `.dockerignore` leaves out. The folder holds plain files and
 * folders alone: the cage that unpacked the archive refuses everything else.
 */
import { createHash } from "node:crypto";
import { createReadStream, type Dirent } from "node:fs";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Ignores, ignoreRules } from "../../dockerfile/ignore.ts";
import { hasPattern, pathPattern } from "../../lib/path-pattern.ts";
import { BuildFailed } from "./build-failed.ts";

const IGNORE_FILE = ".dockerignore";
/** Longest file of rules. */
const IGNORE_BYTES_MAX = 256 * 1024;

export class BuildContext {
  readonly folder: string;
  readonly #digests = new Map<string, Promise<string>>();

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Removes what is ignored from the folder. `dockerfile` has its own file of rules, or the context has one. */
  static async open(folder: string, dockerfile: string): Promise<BuildContext> {
    const rules =
      (await textOf(join(folder, `${dockerfile}${IGNORE_FILE}`))) ?? (await textOf(join(folder, IGNORE_FILE)));
    if (rules !== null) await removeIgnored(folder, "", timed(ignoreRules(rules)));
    return new BuildContext(folder);
  }

  /** A digest over names, modes and contents of what the patterns mean; null when one means nothing. */
  async digest(patterns: readonly string[]): Promise<string | null> {
    const hash = createHash("sha256");
    for (const pattern of patterns) {
      const names = pattern.split("/").filter((name) => name !== "");
      const found = await this.#match("", names);
      if (found.length === 0) return null;
      for (const path of found) hash.update(`${path}\0${await this.#digestOf(path)}\0`);
      hash.update("\0");
    }
    return hash.digest("hex");
  }

  async #match(folder: string, [name, ...rest]: string[]): Promise<string[]> {
    if (name === undefined) return [folder];
    if (name === "..") throw new Error("a path of the context leads out of it");
    if (!hasPattern(name)) {
      const path = join(folder, name);
      const found = await stat(join(this.folder, path)).catch(() => null);
      return found === null ? [] : this.#match(path, rest);
    }
    const pattern = pathPattern(name);
    const entries = await entriesOf(join(this.folder, folder));
    const found: string[] = [];
    for (const entry of entries)
      if (pattern?.test(entry.name)) found.push(...(await this.#match(join(folder, entry.name), rest)));
    return found;
  }

  #digestOf(path: string): Promise<string> {
    const known = this.#digests.get(path) ?? this.#read(path);
    this.#digests.set(path, known);
    return known;
  }

  async #read(path: string): Promise<string> {
    const hash = createHash("sha256");
    const place = join(this.folder, path);
    const found = await stat(place);
    hash.update(`${found.isDirectory()} ${(found.mode & 0o111) !== 0}`);
    if (found.isDirectory())
      for (const { name } of await entriesOf(place))
        hash.update(`${name}\0${await this.#digestOf(join(path, name))}\0`);
    else for await (const chunk of createReadStream(place)) hash.update(chunk as Buffer);
    return hash.digest("hex");
  }
}

/** Sorted by name, so that a digest does not depend on the file system. */
const entriesOf = async (folder: string): Promise<Dirent[]> =>
  (await readdir(folder, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));

/** Most time that rules of strangers may take of the one thread that serves everybody. */
const IGNORE_MS_MAX = 10_000;

function timed(ignores: Ignores): Ignores {
  let leftMs = IGNORE_MS_MAX;
  return (path) => {
    const begunMs = performance.now();
    const isIgnored = ignores(path);
    leftMs -= performance.now() - begunMs;
    if (leftMs < 0) throw new BuildFailed(`The rules of ${IGNORE_FILE} take too long for so many files.`);
    return isIgnored;
  };
}

/** A folder that is ignored may hold exceptions, so its files are looked at one by one. */
async function removeIgnored(root: string, folder: string, ignores: Ignores): Promise<boolean> {
  let isEmpty = true;
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    const isGone = entry.isDirectory() ? (await removeIgnored(root, path, ignores)) && ignores(path) : ignores(path);
    if (isGone) await rm(join(root, path), { recursive: true });
    else isEmpty = false;
  }
  return isEmpty;
}

async function textOf(file: string): Promise<string | null> {
  const found = await stat(file).catch(() => null);
  return found?.isFile() && found.size <= IGNORE_BYTES_MAX ? readFile(file, "utf8") : null;
}
