/** Handles that the kernel has, and those of the server behind them, which are opened again after a new connection. */
import { constants } from "node:fs";
import { ConnectionBroke, FileError } from "../errors.ts";
import type { Answer, FileRef } from "../wire.ts";
import type { Channel } from "./channel.ts";

const { O_APPEND } = constants;
const TRIES = 3;

interface OpenFile {
  node: bigint;
  flags: number;
  remote: number;
  epoch: number;
  reopening: Promise<void> | null;
}

export class OpenFiles {
  readonly #channel: Channel;
  readonly #fileOf: (node: bigint) => FileRef;
  readonly #open = new Map<number, OpenFile>();
  #last = 0;

  constructor(channel: Channel, fileOf: (node: bigint) => FileRef) {
    this.#channel = channel;
    this.#fileOf = fileOf;
  }

  add(node: bigint, flags: number, { fh }: Answer): number {
    if (fh === undefined) throw new FileError("EIO");
    this.#last += 1;
    this.#open.set(this.#last, { node, flags, remote: fh, epoch: this.#channel.epoch, reopening: null });
    return this.#last;
  }

  /**
   * Asks something about an open file. `remote` is called when the question is sent. A question that may be asked
   * twice is, when the connection breaks.
   */
  async use(fh: number, isRepeatable: boolean, ask: (remote: () => number) => Promise<Answer>): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      try {
        return await ask(await this.#remote(fh));
      } catch (error) {
        if (!(error instanceof ConnectionBroke) || !isRepeatable || tries === TRIES) throw error;
      }
    }
  }

  appends(fh: number): boolean {
    return ((this.#open.get(fh)?.flags ?? 0) & O_APPEND) !== 0;
  }

  /** The server's handle. ESTALE for a handle that another process gave out, and for a file that is gone. */
  async #remote(fh: number): Promise<() => number> {
    const file = this.#open.get(fh);
    if (!file) throw new FileError("ESTALE");
    await this.#channel.ready();
    if (file.epoch !== this.#channel.epoch) {
      file.reopening ??= this.#reopen(file).finally(() => {
        file.reopening = null;
      });
      await file.reopening;
    }
    return () => {
      if (file.epoch !== this.#channel.epoch) throw new ConnectionBroke();
      return file.remote;
    };
  }

  async close(fh: number): Promise<void> {
    const file = this.#open.get(fh);
    this.#open.delete(fh);
    if (!file || file.epoch !== this.#channel.epoch) return;
    await this.#channel.ask("close", () => ({ fh: file.remote })).catch(() => {});
  }

  async #reopen(file: OpenFile): Promise<void> {
    const { flags } = file;
    const ask = this.#channel.ask("open", () => ({ ...this.#fileOf(file.node), flags }));
    const { fh } = await ask.catch((error: unknown) => {
      throw error instanceof FileError && error.code === "ENOENT" ? new FileError("ESTALE") : error;
    });
    if (fh === undefined) throw new FileError("EIO");
    file.remote = fh;
    file.epoch = this.#channel.epoch;
  }
}
