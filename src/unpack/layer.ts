/**
 * Unpacks one image layer as overlayfs wants it. A folder that the archive does not list but puts files into is the one
 * of the layers below: with its owner and mode, or where its link leads, as if the layer were the root.
 *
 * A whiteout is noted in the place where it stands, as an empty file, so that whatever the archive does to that place
 * afterwards is done to the note too. The marks that the kernel reads are made of the notes by whoever may make them
 * (see the local driver); `LayerNotes` says where.
 */
import { closeSync, type Stats } from "node:fs";
import { writeAll } from "./bytes.ts";
import { quoted, refused } from "./refusal.ts";
import type { TarEntry } from "./tar-reader.ts";
import { DEPTH_MAX, type Folder, keyOf, namesIn, type Owner, settle, Tree } from "./tree.ts";

/** Places below the layer, which hold no links. */
export interface LayerNotes {
  /** Empty files that stand for "removed from the layers below". */
  removed: string[];
  /** Folders that hide those of the same name below. */
  opaque: string[];
}

const RULES = { pathBytesMax: 4096, depthMax: DEPTH_MAX };
const LINKS_MAX = 40; // as many as the kernel follows
/** Names looked at for one path, with all its links. */
const STEPS_MAX = 4096;
/** Ids beyond the range of a workload cannot be seen in it. */
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
  /** Set at the end: a folder that its owner may not write to, or its time, would not survive its files. */
  readonly #folders = new Map<string, { mode: number; mtimeS: number | null }>();
  /** Whether a place is a folder in this layer, all the way down; asked by the layers above. */
  readonly #known = new Map<string, "folder" | "other" | "none">();

  /** `owners`: whether files get the owners that the archive names. */
  constructor(path: string, lowers: readonly Layer[], owners: boolean) {
    this.#tree = new Tree(path);
    this.#lowers = lowers;
    this.#owners = owners;
  }

  async apply(entry: TarEntry): Promise<void> {
    const names = namesIn(entry.path, RULES);
    const name = names.pop();
    if (name === undefined) return; // the root itself
    const folder = this.#walk(names);
    if (name === OPAQUE) this.#opaque.add(folder.names.join("/"));
    else if (name.startsWith(`${WHITEOUT}${WHITEOUT}`))
      return; // bookkeeping of an old image format
    else if (name.startsWith(WHITEOUT)) this.#whiteOut(folder, name.slice(WHITEOUT.length));
    else await this.#put(folder, name, entry);
  }

  /** After the last entry: the layer is only looked at from now on, by those above it. */
  rest(): LayerNotes {
    this.#tree.rest();
    return { removed: [...this.#removed], opaque: [...this.#opaque] };
  }

  /** After the last layer. */
  finish(): void {
    // The deepest first: a folder that is closed to its owner is not entered again.
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

  /** Only what lies below is hidden: what this layer itself has in the place stays. */
  #whiteOut(folder: Folder, name: string): void {
    if (name === "" || name === "." || name === "..") throw refused("it removes something that has no name");
    const place = keyOf(folder, name);
    const there = this.#tree.lstat(folder, name);
    if (there?.isDirectory()) this.#opaque.add(place);
    if (there) return;
    closeSync(this.#tree.createFile(folder, name));
    this.#removed.add(place);
  }

  /** The folder of that name, made when missing; links are followed as if the layer were the root. */
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

  /** Above the root is the root, as in the workload. */
  #walkBack({ names }: Folder): Folder {
    const parent = this.#tree.find(names.slice(0, -1));
    if (!parent) throw new Error("a folder that was walked through is gone");
    return parent;
  }

  #makeFolder(folder: Folder, name: string, there: Stats | null, below: Below | null): Folder {
    const place = keyOf(folder, name);
    if (there) this.#clear(folder, name);
    const made = this.#tree.makeFolder(folder, name);
    // What stood here has hidden the folder below, and that one does not come back.
    if (there) this.#opaque.add(place);
    const like = below?.stat.isDirectory() ? below : null;
    if (like && this.#owners) settle(made.fd, like.stat, 0o700, null);
    this.#folders.set(place, { mode: like?.mode ?? FOLDER_MODE, mtimeS: null });
    return made;
  }

  /** Whatever stands there goes, with all that is known of it. */
  #clear(folder: Folder, name: string): void {
    this.#tree.remove(folder, name, (place) => {
      this.#removed.delete(place);
      this.#opaque.delete(place);
      this.#folders.delete(place);
    });
  }

  async #put(folder: Folder, name: string, entry: TarEntry): Promise<void> {
    if (entry.type === "device") throw refused(`it holds the device file ${quoted(entry.path)}`);
    if (entry.type === "fifo") return; // of no use in an image: whoever needs one makes it
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
    // The second walk may have closed the folder of the first; both fit together.
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

  /** What the layers below have in that place; their own links are not followed on the way, they lead elsewhere. */
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

  /** `names` are folders. */
  #look(names: readonly string[], name: string): Below | null {
    const found = this.#tree.look([...names, name]);
    if (!found) return null;
    const mode = this.#folders.get([...names, name].join("/"))?.mode ?? found.stat.mode & 0o7777;
    return { ...found, mode };
  }
}

interface Below {
  stat: Stats;
  /** That a folder will have in the end. */
  mode: number;
  link: string | null;
}

const idOf = (id: number): number => (Number.isInteger(id) && id >= 0 && id <= ID_MAX ? id : ID_MAX);
