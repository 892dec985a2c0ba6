/**
 * A process keeps its sandbox awake by writing `+` to a FIFO, and lets it sleep again with `-` or `=0`. The daemon
 * holds both ends open, so a writer never blocks and never gets SIGPIPE.
 */
import { constants, lstatSync, mkdirSync, openSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { makeFifo, readNow } from "../libc.ts";

/** How often the FIFO is drained when `value` is not read, so that it never fills up. */
const LOOK_MS = 5_000;

export class AwakeCounter {
  readonly #fd: number;
  readonly #buffer = Buffer.alloc(4096);
  #value = 0;

  private constructor(fd: number) {
    this.#fd = fd;
    setInterval(() => this.#drain(), LOOK_MS).unref();
  }

  static open(path: string): AwakeCounter {
    mkdirSync(dirname(path), { recursive: true });
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (!found?.isFIFO()) {
      rmSync(path, { force: true });
      if (!makeFifo(path, 0o622)) throw new Error(`The FIFO ${path} could not be made.`);
    }
    return new AwakeCounter(openSync(path, constants.O_RDWR | constants.O_NONBLOCK | constants.O_NOFOLLOW));
  }

  /** Drains the FIFO first, so that the value is current. */
  get value(): number {
    this.#drain();
    return this.#value;
  }

  #drain(): void {
    for (let got = readNow(this.#fd, this.#buffer); got > 0; got = readNow(this.#fd, this.#buffer)) {
      for (const sign of this.#buffer.toString("latin1", 0, got).matchAll(/\+|-|=(\d{1,6})/g)) {
        if (sign[1] !== undefined) this.#value = Number(sign[1]);
        else this.#value = Math.max(0, this.#value + (sign[0] === "+" ? 1 : -1));
      }
    }
  }
}
