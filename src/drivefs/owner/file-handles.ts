/** Files and folders that a mount has open, by number. */
import { close, type Dir } from "node:fs";
import { promisify } from "node:util";
import { FileError } from "../errors.ts";

const closeFd = promisify(close);

/** Handles of one mount: a program that opens more is refused, as by a limit of open files. */
const HANDLES_MAX = 4096;

type Handle = { fd: number } | { dir: Dir };

export class FileHandles {
  readonly #handles = new Map<number, Handle>();
  #last = 0;

  /** Throws before anything is opened. */
  requireRoom(): void {
    if (this.#handles.size >= HANDLES_MAX) throw new FileError("ENFILE");
  }

  add(handle: Handle): number {
    this.#last += 1;
    this.#handles.set(this.#last, handle);
    return this.#last;
  }

  fd(fh: number): number {
    const handle = this.#handles.get(fh);
    if (handle && "fd" in handle) return handle.fd;
    throw new FileError("EBADF");
  }

  dir(fh: number): Dir {
    const handle = this.#handles.get(fh);
    if (handle && "dir" in handle) return handle.dir;
    throw new FileError("EBADF");
  }

  async close(fh: number): Promise<void> {
    const handle = this.#handles.get(fh);
    this.#handles.delete(fh);
    if (handle) await closed(handle);
  }

  async closeAll(): Promise<void> {
    const all = [...this.#handles.values()];
    this.#handles.clear();
    for (const handle of all) await closed(handle).catch(() => {});
  }
}

const closed = (handle: Handle): Promise<void> => ("fd" in handle ? closeFd(handle.fd) : handle.dir.close());
