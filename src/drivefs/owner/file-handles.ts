/** Files and folders that a mount has open, by number. */
import { close, type Dir } from "node:fs";
import { promisify } from "node:util";
import { FileError } from "../errors.ts";
import type { DescriptorShare } from "./descriptor-shares.ts";

const closeFd = promisify(close);

/** Handles of one mount: a program that opens more is refused, as by a limit of open files. */
const HANDLES_MAX = 4096;

export type Handle = { fd: number } | { dir: Dir };

export class FileHandles {
  readonly #share: DescriptorShare;
  readonly #handles = new Map<number, Handle>();
  /** Handles, and those that are being opened. */
  #count = 0;
  #last = 0;

  constructor(share: DescriptorShare) {
    this.#share = share;
  }

  /** Refuses before anything is opened when there is no room. */
  async open(open: () => Promise<Handle>): Promise<number> {
    if (this.#count >= HANDLES_MAX || !this.#share.take()) throw new FileError("ENFILE");
    this.#count += 1;
    try {
      const handle = await open();
      this.#last += 1;
      this.#handles.set(this.#last, handle);
      return this.#last;
    } catch (error) {
      this.#gone();
      throw error;
    }
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
    if (!handle) return;
    this.#handles.delete(fh);
    await closed(handle).finally(() => this.#gone());
  }

  async closeAll(): Promise<void> {
    for (const fh of [...this.#handles.keys()]) await this.close(fh).catch(() => {});
  }

  #gone(): void {
    this.#count -= 1;
    this.#share.give();
  }
}

const closed = (handle: Handle): Promise<void> => ("fd" in handle ? closeFd(handle.fd) : handle.dir.close());
