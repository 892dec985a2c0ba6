/**
 * The daemon's end of a process's standard input: a pipe, because `/dev/stdin` cannot be opened on a socket. Writes are
 * queued and wait while the process reads slowly (backpressure).
 */
import { closeSync, constants, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type FileSink, fileSink } from "../bun.ts";
import { ApiError } from "../http/api-error.ts";
import { makeFifo } from "../libc.ts";
import { randomWord } from "../random-word.ts";

/** Readable for any user that the process may run as; the name is removed before the process starts. */
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

  /** `start` gets the descriptor that the process reads from; it is closed here afterwards. */
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
      // A non-blocking reader lets the write end open at once; with a writer present, the process's end opens at once
      // too.
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

  /** Resolves when the pipe has taken all bytes. Throws 422 when no process reads it any more. */
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

  /** Closes the pipe after the queued writes; the process then reads to the end of its input. */
  end(): Promise<void> {
    return this.#inTurn(async () => this.#close());
  }

  /** Closes the pipe at once, because the process has ended; pending writes fail. */
  drop(): void {
    this.#close();
  }

  #close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      void Promise.resolve(this.#sink.end()).catch(() => {}); // nothing is buffered, or no process reads it
    } finally {
      closeSync(this.#fd);
    }
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(act);
    this.#turn = done.catch(() => {}); // the caller of `act` gets the error
    return done;
  }
}

const closed = (): ApiError => new ApiError(422, "Nothing reads the standard input of this process any more.");
