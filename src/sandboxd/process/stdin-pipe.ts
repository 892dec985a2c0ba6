/**
 * The daemon's end of a process's standard input: a real pipe, so that `/dev/stdin` can be opened by its name, which a
 * socket does not allow. Writers are served one after the other and wait while the process is slower than they are.
 */
import { closeSync, constants, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type FileSink, fileSink } from "../bun.ts";
import { ApiError } from "../http/api-error.ts";
import { makeFifo } from "../libc.ts";
import { randomWord } from "../random-word.ts";

/** Readable for whoever the process runs as; its name is gone before the process starts. */
const FIFO_MODE = 0o644;

export class StdinPipe {
  readonly #fd: number;
  readonly #sink: FileSink;
  #turn: Promise<void> = Promise.resolve();
  #isOpen = true;

  private constructor(fd: number) {
    this.#fd = fd;
    this.#sink = fileSink(fd);
  }

  /** `start` gets the descriptor that the process reads from, which is closed here afterwards. */
  static around(folder: string, start: (childFd: number) => void): StdinPipe {
    const path = join(folder, `stdin-${randomWord(12)}`);
    if (!makeFifo(path, FIFO_MODE)) throw new ApiError(422, "A pipe for standard input could not be made.");
    const opened: number[] = [];
    const open = (flags: number): number => {
      const fd = openSync(path, flags);
      opened.push(fd);
      return fd;
    };
    let ours = -1;
    try {
      // With a reader that does not wait the writer's end opens at once, and with a writer the process's own end does.
      open(constants.O_RDONLY | constants.O_NONBLOCK);
      const writer = open(constants.O_WRONLY | constants.O_NONBLOCK);
      start(open(constants.O_RDONLY));
      ours = writer;
    } finally {
      for (const fd of opened) if (fd !== ours) closeSync(fd);
      rmSync(path, { force: true });
    }
    return new StdinPipe(ours);
  }

  /** Resolves when the pipe has taken it all. Throws 422 when nothing reads it any more. */
  write(chunk: Uint8Array): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#isOpen) throw closed();
      try {
        this.#sink.write(chunk);
        await this.#sink.flush();
      } catch {
        this.#close();
        throw closed();
      }
    });
  }

  /** The process reads to the end of what it was given, and then finds the end. */
  end(): Promise<void> {
    return this.#inTurn(async () => this.#close());
  }

  /** At the end of the process: whoever still writes is told by the pipe itself. */
  drop(): void {
    this.#close();
  }

  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      void Promise.resolve(this.#sink.end()).catch(() => {}); // nothing is left in it, or nobody reads it
    } finally {
      closeSync(this.#fd);
    }
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(act);
    this.#turn = done.catch(() => {}); // told to its own caller
    return done;
  }
}

const closed = (): ApiError => new ApiError(422, "Nothing reads the standard input of this process any more.");
