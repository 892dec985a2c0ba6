/**
 * Unpacks one image layer for overlayfs. When the archive puts files into a folder that it does not list, the folder of
 * the layers below counts: its owner and mode are copied, or its link is followed, as if the layer were the root.
 *
 * A whiteout is first an empty file at its path (a note), so that later entries of the archive that change the path
 * change the note too. The local driver, which has the rights, turns the notes into the marks that the kernel reads;
 * `LayerNotes` lists them.
 */
import { closeSync, type Stats } from "node:fs";
import { writeAll } from "./bytes.ts";
import { quoted, refused } from "./refusal.ts";
import type { TarEntry } from "./tar-reader.ts";
import { DEPTH_MAX, type Folder, keyOf, namesIn, type Owner, settle, Tree } from "./tree.ts";

/** Paths below the layer; no folder in them is a link. */
export interface LayerNotes {
  /** Empty files that stand for a path removed from the layers below. */
  removed: string[];
  /** Folders that hide the folder of the same name below (opaque). */
  opaque: string[];
}

const RULES = { pathBytesMax: 4096, depthMax: DEPTH_MAX };
const LINKS_MAX = 40; // the kernel's own limit
/** Most names visited for one path, including all its links. */
const STEPS_MAX = 4096;
/** Highest id inside a workload; higher ids in the archive become this one. */
const ID_MAX = 65_534;
const WHITEOUT = ".wh.";
const OPAQUE = ".wh..wh..opq";
const FOLDER_MODE = 0o755;

export class Layer {
  readonly #tree: Tree;
  /** Topmost first. */
  readonly #lowers: readonly Layer[];
  readonly #owners: boolean;
  readonly #removed = new Set<string>();
  readonly #opaque = new Set<string>();
  /**
   * Modes and times of folders, set at the end: a read-only folder would refuse its files, and writing them changes its
   * time.
   */
  readonly #folders = new Map<string, { mode: number; mtimeS: number | null }>();
  /** Cache for the layers above: whether a path is a folder in this layer, with no link on the way. */
  readonly #known = new Map<string, "folder" | "other" | "none">();

  /** `owners`: whether files get the owners that the archive names. `opaque`: of a layer that was unpacked before. */
  constructor(path: string, lowers: readonly Layer[], owners: boolean, opaque: readonly string[] = []) {
    this.#tree = new Tree(path);
    this.#lowers = lowers;
    this.#owners = owners;
    for (const place of opaque) this.#opaque.add(place);
  }

  async apply(entry: TarEntry): Promise<void> {
    const names = namesIn(entry.path, RULES);
    const name = names.pop();
    if (name === undefined) return; // the root itself
    const folder = this.#walk(names);
    if (name === OPAQUE) this.#opaque.add(folder.names.join("/"));
    else if (name.startsWith(`${WHITEOUT}${WHITEOUT}`))
      return; // metadata of an old image format
    else if (name.startsWith(WHITEOUT)) this.#whiteOut(folder, name.slice(WHITEOUT.length));
    else await this.#put(folder, name, entry);
  }

  /** Called after the last entry: the layers above only read this layer from now on. */
  rest(): LayerNotes {
    this.#tree.rest();
    return { removed: [...this.#removed], opaque: [...this.#opaque] };
  }

  /** Called after the last layer. */
  finish(): void {
    // Deepest first: a folder may become closed to its owner and is not entered again.
    const depth = ([place]: [string, unknown]): number => place.split("/").length;
    for (const [place, { mode, mtimeS }] of [...this.#folders].sort((a, b) => depth(b) - depth(a))) {
      const folder = this.#tree.find(place.split("/"));
      if (folder) settle(folder.fd, null, mode, mtimeS);
    }
    this.#tree.rest();
  }

  close(): void {
    this.#tree.close();
  }

  /** Hides the path in the layers below; this layer's own entry at the path stays. */
  #whiteOut(folder: Folder, name: string): void {
    if (name === "" || name === "." || name === "..") throw refused("it removes something that has no name");
    const place = keyOf(folder, name);
    const there = this.#tree.lstat(folder, name);
    if (there?.isDirectory()) this.#opaque.add(place);
    if (there) return;
    closeSync(this.#tree.createFile(folder, name));
    this.#removed.add(place);
  }

  /** Opens the folder, and creates it when missing. Links are followed as if the layer were the root. */
  #walk(names: readonly string[]): Folder {
    const tree = this.#tree;
    const todo = names.toReversed();
    let [folder, links, steps] = [tree.root, 0, 0];
    for (let name = todo.pop(); name !== undefined; name = todo.pop()) {
      steps += 1;
      if (steps > STEPS_MAX) throw refused("its links lead too far");
      if (name === "..") {
        folder = this.#walkBack(folder);
        continue;
      }
      const opened = tree.opened(folder, name);
      if (opened) {
        folder = opened;
        continue;
      }
      const there = tree.lstat(folder, name);
      const below = there ? null : this.#findBelow(folder, name);
      const link = there?.isSymbolicLink() ? tree.readlink(folder, name) : (below?.link ?? null);
      if (link === null) {
        folder = there?.isDirectory() ? tree.open(folder, name) : this.#makeFolder(folder, name, there, below);
        continue;
      }
      links += 1;
      if (links > LINKS_MAX) throw refused("its links lead in circles");
      if (link.startsWith("/")) folder = tree.root;
      const parts = link.split("/").filter((part) => part !== "" && part !== ".");
      if (parts.length > STEPS_MAX) throw refused("its links lead too far");
      todo.push(...parts.reverse());
    }
    return folder;
  }

  /** The parent of the root is the root, as in the workload. */
  #walkBack({ names }: Folder): Folder {
    const parent = this.#tree.find(names.slice(0, -1));
    if (!parent) throw new Error("a folder that was walked through is gone");
    return parent;
  }

  #makeFolder(folder: Folder, name: string, there: Stats | null, below: Below | null): Folder {
    const place = keyOf(folder, name);
    if (there) this.#clear(folder, name);
    const made = this.#tree.makeFolder(folder, name);
    // The entry that stood here had hidden the folder below, which must stay hidden.
    if (there) this.#opaque.add(place);
    const like = below?.stat.isDirectory() ? below : null;
    if (like && this.#owners) settle(made.fd, like.stat, 0o700, null);
    this.#folders.set(place, { mode: like?.mode ?? FOLDER_MODE, mtimeS: null });
    return made;
  }

  /** Removes the entry and everything recorded about it. */
  #clear(folder: Folder, name: string): void {
    this.#tree.remove(folder, name, (place) => {
      this.#removed.delete(place);
      this.#opaque.delete(place);
      this.#folders.delete(place);
    });
  }

  async #put(folder: Folder, name: string, entry: TarEntry): Promise<void> {
    if (entry.type === "device") throw refused(`it holds the device file ${quoted(entry.path)}`);
    if (entry.type === "fifo") return; // dropped: an image has no use for a FIFO
    const owner = this.#owners ? { uid: idOf(entry.uid), gid: idOf(entry.gid) } : null;
    const there = this.#tree.lstat(folder, name);
    if (entry.type === "directory") return this.#putFolder(folder, name, there, entry, owner);
    if (there) this.#clear(folder, name);
    if (entry.type === "link") this.#putLink(folder, name, entry);
    else if (entry.type === "symlink") this.#putSymlink(folder, name, entry, owner);
    else await this.#putFile(folder, name, entry, owner);
  }

  #putFolder(folder: Folder, name: string, there: Stats | null, entry: TarEntry, owner: Owner | null): void {
    const made = there?.isDirectory() ? this.#tree.open(folder, name) : this.#makeFolder(folder, name, there, null);
    if (owner) settle(made.fd, owner, 0o700, null);
    this.#folders.set(keyOf(folder, name), { mode: entry.mode, mtimeS: entry.mtimeS });
  }

  #putSymlink(folder: Folder, name: string, { linkPath, mtimeS }: TarEntry, owner: Owner | null): void {
    if (linkPath === "" || linkPath.includes("\0") || Buffer.byteLength(linkPath) >= RULES.pathBytesMax)
      throw refused(`the link ${quoted(keyOf(folder, name))} in it leads nowhere`);
    this.#tree.makeLink(folder, name, linkPath, owner, mtimeS);
  }

  #putLink(folder: Folder, name: string, entry: TarEntry): void {
    const names = namesIn(entry.linkPath, RULES);
    const target = names.pop();
    const from = target === undefined ? null : this.#walk(names);
    const nowhere = refused(`the link ${quoted(entry.path)} in it leads nowhere`);
    if (target === undefined || !from || this.#removed.has(keyOf(from, target))) throw nowhere;
    if (!this.#tree.lstat(from, target)?.isFile()) throw nowhere;
    // The walk to the target may have closed `folder`, so it is opened again; the tree can hold both open.
    const to = this.#tree.find(folder.names);
    if (!to) throw nowhere;
    this.#tree.linkFile(from, target, to, name);
  }

  async #putFile(folder: Folder, name: string, entry: TarEntry, owner: Owner | null): Promise<void> {
    const fd = this.#tree.createFile(folder, name);
    try {
      for await (const chunk of entry.body()) writeAll(fd, chunk);
      settle(fd, owner, entry.mode, entry.mtimeS);
    } finally {
      closeSync(fd);
    }
  }

  /** The entry of the layers below at that path. Links of those layers are not followed on the way. */
  #findBelow(folder: Folder, name: string): Below | null {
    if (this.#hides(folder)) return null;
    for (const lower of this.#lowers) {
      const kind = lower.#kindOf(folder.names);
      if (kind === "other") return null;
      const found = kind === "folder" ? lower.#look(folder.names, name) : null;
      if (found || lower.#hides(folder)) return found;
    }
    return null;
  }

  /** Whether an opaque folder of this layer hides that place in the layers below. */
  #hides({ names }: Folder): boolean {
    return this.#opaque.size > 0 && names.some((_, at) => this.#opaque.has(names.slice(0, at + 1).join("/")));
  }

  #kindOf(names: readonly string[]): "folder" | "other" | "none" {
    const name = names.at(-1);
    if (name === undefined) return "folder";
    const place = names.join("/");
    const known = this.#known.get(place);
    if (known) return known;
    const parent = this.#kindOf(names.slice(0, -1));
    const found = parent === "folder" ? this.#look(names.slice(0, -1), name) : null;
    const kind = parent !== "folder" ? parent : !found ? "none" : found.stat.isDirectory() ? "folder" : "other";
    this.#known.set(place, kind);
    return kind;
  }

  /** `names` must all be folders. */
  #look(names: readonly string[], name: string): Below | null {
    const found = this.#tree.look([...names, name]);
    if (!found) return null;
    const mode = this.#folders.get([...names, name].join("/"))?.mode ?? found.stat.mode & 0o7777;
    return { ...found, mode };
  }
}

interface Below {
  stat: Stats;
  /** The mode that a folder will have in the end. */
  mode: number;
  link: string | null;
}

const idOf = (id: number): number => (Number.isInteger(id) && id >= 0 && id <= ID_MAX ? id : ID_MAX);
