/**
 * Watches folders with inotify directly: the runtime's own watcher cannot tell a creation from a removal, nor a write
 * from a change of permissions. All watches of the daemon share one inotify instance, because the kernel allows a user
 * only 128 of them. The instance exists only while there is a watch.
 */
import { closeSync, lstatSync, readdirSync } from "node:fs";
import { ApiError } from "../http/api-error.ts";
import { inotifyAdd, inotifyOpen, inotifyRemove, readNow } from "../libc.ts";
import { type BytePath, fromBytes, joinPath, toBytes, toText } from "./byte-path.ts";

export interface WatchEvent {
  op: string;
  name: string;
  path: string;
  error: string | null;
}

/** Most folders below one recursive watch; each costs the kernel about a kilobyte. */
const FOLDERS_MAX = 8192;
const LOOK_MS = 20;
const BUFFER_BYTES = 64 * 1024;
const EVENT_HEADER_BYTES = 16;

const IN_MODIFY = 0x2;
const IN_ATTRIB = 0x4;
const IN_MOVED_FROM = 0x40;
const IN_MOVED_TO = 0x80;
const IN_CREATE = 0x100;
const IN_DELETE = 0x200;
const IN_Q_OVERFLOW = 0x4000;
const IN_IGNORED = 0x8000;
const IN_ONLYDIR = 0x1000000;
const IN_ISDIR = 0x40000000;
const MASK = IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_ONLYDIR;

const OPERATIONS: [number, string][] = [
  [IN_CREATE | IN_MOVED_TO, "CREATE"],
  [IN_MODIFY, "WRITE"],
  [IN_DELETE, "REMOVE"],
  [IN_MOVED_FROM, "RENAME"],
  [IN_ATTRIB, "CHMOD"],
];

interface Options {
  recursive: boolean;
  onEvent(event: WatchEvent): void;
}

export class FolderWatch {
  readonly #options: Options;
  readonly #root: BytePath;
  /** Watch descriptor to the folder's path as this watch knows it. */
  readonly folders = new Map<number, BytePath>();
  #full = false;

  private constructor(root: BytePath, options: Options) {
    this.#root = root;
    this.#options = options;
  }

  static open(root: BytePath, options: Options): FolderWatch {
    const watch = new FolderWatch(root, options);
    hub.join(watch);
    try {
      watch.#add(root, false);
      if (watch.folders.size === 0) throw new ApiError(500, `${toText(root)} could not be watched.`);
    } catch (error) {
      watch.close();
      throw error;
    }
    return watch;
  }

  close(): void {
    hub.leave(this);
  }

  overflow(): void {
    this.#report("", this.#root, "", "events were dropped");
  }

  handle(descriptor: number, mask: number, name: Buffer): void {
    const folder = this.folders.get(descriptor);
    if (folder === undefined) return;
    if (mask & IN_IGNORED) return void this.folders.delete(descriptor);
    const op = OPERATIONS.filter(([bits]) => mask & bits).map(([, word]) => word);
    // An event without a name is about the folder itself; the watch on its parent reports that.
    if (op.length === 0 || name.byteLength === 0) return;
    this.#report(op.join("|"), folder, toText(fromBytes(name)), null);
    if (!(mask & IN_ISDIR) || !this.#options.recursive) return;
    const path = joinPath(folder, fromBytes(name));
    if (mask & IN_MOVED_FROM) this.#forget(path);
    if (mask & (IN_CREATE | IN_MOVED_TO)) this.#add(path, true);
  }

  /** Drops the watches below a folder that was moved away. */
  #forget(moved: BytePath): void {
    for (const [descriptor, path] of this.folders) {
      if (path !== moved && !path.startsWith(`${moved}/`)) continue;
      this.folders.delete(descriptor);
      hub.release(descriptor);
    }
  }

  /** `announce`: the folder is new, so entries created before the watch existed are reported as events now. */
  #add(root: BytePath, announce: boolean): void {
    const todo: BytePath[] = [root];
    for (let folder = todo.pop(); folder !== undefined; folder = todo.pop()) {
      if (this.folders.size >= FOLDERS_MAX) {
        this.#tooMany();
        return;
      }
      const descriptor = hub.add(folder);
      if (descriptor === -1) continue; // the folder is gone again, or the daemon may not read it
      this.folders.set(descriptor, folder);
      if (!this.#options.recursive) return;
      for (const name of namesIn(folder)) {
        const path = joinPath(folder, name);
        if (announce) this.#report("CREATE", folder, toText(name), null);
        if (isRealFolder(path)) todo.push(path);
      }
    }
  }

  #tooMany(): void {
    if (this.#full) return;
    this.#full = true;
    this.#report("", this.#root, "", `more than ${FOLDERS_MAX} folders: changes in the others are not reported`);
  }

  #report(op: string, folder: BytePath, name: string, error: string | null): void {
    this.#options.onEvent({ op, name, path: toText(folder), error });
  }
}

function namesIn(folder: BytePath): BytePath[] {
  try {
    return readdirSync(toBytes(folder), { encoding: "buffer" }).map(fromBytes);
  } catch {
    return []; // the folder was removed meanwhile
  }
}

/** Symbolic links are not followed: they may form a cycle or lead out of the tree. */
function isRealFolder(path: BytePath): boolean {
  try {
    return lstatSync(toBytes(path), { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}

/** The shared inotify instance and its listeners. */
const hub = {
  fd: -1,
  timer: null as NodeJS.Timeout | null,
  watches: new Set<FolderWatch>(),
  buffer: Buffer.alloc(0),

  join(watch: FolderWatch): void {
    if (this.fd === -1) {
      this.fd = inotifyOpen();
      if (this.fd === -1)
        throw new ApiError(500, "The machine has no file watcher left (fs.inotify.max_user_instances).");
      this.buffer = Buffer.alloc(BUFFER_BYTES);
      this.timer = setInterval(() => this.drain(), LOOK_MS);
    }
    this.watches.add(watch);
  },

  add(folder: BytePath): number {
    return inotifyAdd(this.fd, toBytes(folder), MASK);
  },

  leave(watch: FolderWatch): void {
    this.watches.delete(watch);
    if (this.watches.size === 0 && this.fd !== -1) {
      if (this.timer) clearInterval(this.timer);
      closeSync(this.fd);
      this.fd = -1;
      this.buffer = Buffer.alloc(0);
      return;
    }
    for (const descriptor of watch.folders.keys()) this.release(descriptor);
  },

  /** Removes the watch unless another listener uses the same folder. */
  release(descriptor: number): void {
    const shared = [...this.watches].some((other) => other.folders.has(descriptor));
    if (!shared) inotifyRemove(this.fd, descriptor);
  },

  drain(): void {
    for (let got = readNow(this.fd, this.buffer); got > 0; got = readNow(this.fd, this.buffer)) {
      for (let at = 0; at + EVENT_HEADER_BYTES <= got; ) {
        const descriptor = this.buffer.readInt32LE(at);
        const mask = this.buffer.readUInt32LE(at + 4);
        const length = this.buffer.readUInt32LE(at + 12);
        const padded = this.buffer.subarray(at + EVENT_HEADER_BYTES, at + EVENT_HEADER_BYTES + length);
        const end = padded.indexOf(0);
        const name = Buffer.from(end === -1 ? padded : padded.subarray(0, end));
        at += EVENT_HEADER_BYTES + length;
        for (const watch of [...this.watches]) {
          if (mask & IN_Q_OVERFLOW) watch.overflow();
          else watch.handle(descriptor, mask, name);
        }
      }
      if (this.fd === -1) return;
    }
  },
};
