/** The files that the kernel knows, by its numbers for them: where each was seen last, and which it is. */
import { FileError } from "../errors.ts";
import type { EntryRef, FileRef } from "../wire.ts";
import { ROOT_NODE } from "./kernel.ts";

interface KnownFile {
  node: bigint;
  id: string;
  /** Null for the root. */
  folder: KnownFile | null;
  name: string;
  /** How often the kernel was told of it; it tells when it forgets. */
  lookups: bigint;
  /** Known files that were seen in it. */
  children: number;
}

export class KnownFiles {
  readonly #byNode = new Map<bigint, KnownFile>();
  readonly #byIdentity = new Map<string, KnownFile>();
  readonly #root: KnownFile;
  #last = ROOT_NODE;

  constructor(root: string) {
    this.#root = { node: ROOT_NODE, id: root, folder: null, name: "", lookups: 1n, children: 0 };
    this.#byNode.set(ROOT_NODE, this.#root);
    this.#byIdentity.set(root, this.#root);
  }

  /** The folder that the mount shows may be another one after a new connection. */
  rootIs(id: string): void {
    this.#byIdentity.delete(this.#root.id);
    this.#root.id = id;
    this.#byIdentity.set(id, this.#root);
  }

  /** A file of the kernel. ESTALE for numbers that another process gave out. */
  file(node: bigint): FileRef {
    const { id, folder, name } = this.#get(node);
    const above = folder ?? this.#root;
    return { folder: namesTo(above), up: above.id, name, id };
  }

  entry(folder: bigint, name: string): EntryRef {
    const found = this.#get(folder);
    return { folder: namesTo(found), up: found.id, name };
  }

  /** The number of a file that was found there. */
  found(folder: bigint, name: string, id: string): bigint {
    const above = this.#get(folder);
    let file = this.#byIdentity.get(id);
    if (!file) {
      this.#last += 1n;
      file = { node: this.#last, id, folder: above, name, lookups: 0n, children: 0 };
      above.children += 1;
      this.#byNode.set(file.node, file);
      this.#byIdentity.set(id, file);
    } else this.#place(file, above, name);
    file.lookups += 1n;
    return file.node;
  }

  /** A file that is elsewhere now. */
  moved(id: string, folder: bigint, name: string): void {
    const [file, above] = [this.#byIdentity.get(id), this.#byNode.get(folder)];
    if (file && above) this.#place(file, above, name);
  }

  forget(node: bigint, times: bigint): void {
    const file = this.#byNode.get(node);
    if (!file || file === this.#root) return;
    file.lookups -= times;
    this.#dropUnused(file);
  }

  #get(node: bigint): KnownFile {
    const file = this.#byNode.get(node);
    if (!file) throw new FileError("ESTALE");
    return file;
  }

  #place(file: KnownFile, folder: KnownFile, name: string): void {
    if (file === this.#root || isBelow(folder, file)) return;
    const before = file.folder;
    file.name = name;
    if (before === folder) return;
    folder.children += 1;
    file.folder = folder;
    if (before) {
      before.children -= 1;
      this.#dropUnused(before);
    }
  }

  /** A folder stays while a known file was seen in it, because it is part of that file's path. */
  #dropUnused(file: KnownFile): void {
    if (file === this.#root || file.lookups > 0n || file.children > 0 || !this.#byNode.delete(file.node)) return;
    if (this.#byIdentity.get(file.id) === file) this.#byIdentity.delete(file.id);
    if (!file.folder) return;
    file.folder.children -= 1;
    this.#dropUnused(file.folder);
  }
}

function namesTo(folder: KnownFile): string[] {
  const names: string[] = [];
  for (let at: KnownFile | null = folder; at?.folder; at = at.folder) names.push(at.name);
  return names.reverse();
}

function isBelow(folder: KnownFile, file: KnownFile): boolean {
  for (let at: KnownFile | null = folder; at; at = at.folder) if (at === file) return true;
  return false;
}
