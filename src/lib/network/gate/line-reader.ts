/** The first lines of a connection; bytes behind them stay for whoever uses the connection next. */
import type { Socket } from "node:net";

export class LineReader {
  readonly #socket: Socket;
  readonly #bytesMax: number;
  #received: Buffer = Buffer.alloc(0);
  #isOver = false;
  #wake: (() => void) | null = null;
  readonly #timer: NodeJS.Timeout;

  /** `waitMs` is for all lines together. */
  constructor(socket: Socket, bytesMax: number, waitMs: number) {
    this.#socket = socket;
    this.#bytesMax = bytesMax;
    this.#timer = setTimeout(this.#end, waitMs);
    socket.on("readable", this.#take).on("close", this.#end).on("end", this.#end);
  }

  /** Null when the other side closed, was too slow or sent too long a line. */
  async next(): Promise<string | null> {
    for (;;) {
      const end = this.#received.indexOf(0x0a);
      if (end >= 0) {
        const line = this.#received.toString("latin1", 0, end);
        this.#received = this.#received.subarray(end + 1);
        return line;
      }
      if (this.#isOver || this.#received.length > this.#bytesMax) return null;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Answers with the bytes behind the last line. The connection is neither flowing nor paused, as a new one. */
  release(): Buffer {
    clearTimeout(this.#timer);
    this.#socket.off("readable", this.#take).off("close", this.#end).off("end", this.#end);
    return this.#received;
  }

  readonly #take = (): void => {
    const chunk: Buffer | null = this.#socket.read();
    if (chunk === null) return;
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    this.#wake?.();
  };

  readonly #end = (): void => {
    this.#isOver = true;
    this.#wake?.();
  };
}
