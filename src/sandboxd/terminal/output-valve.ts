/**
 * Stops and restarts the output of a pseudo terminal, as Ctrl-S and Ctrl-Q do but without characters that programs could
 * see: a program that writes waits, and keys still reach it. Bun reads a terminal for as long as it has output.
 */
import { closeSync, constants, openSync } from "node:fs";
import { flowTerminal } from "../libc.ts";

export class OutputValve {
  /** The terminal as its programs have it; null where it cannot be opened or the kernel has no flow control. */
  #fd: number | null;
  #isShut = false;

  /** `pid`: a process that was just started on the terminal. */
  constructor(pid: number) {
    try {
      this.#fd = openSync(`/proc/${pid}/fd/0`, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
    } catch {
      this.#fd = null;
    }
  }

  get isShut(): boolean {
    return this.#isShut;
  }

  /** False when the output cannot be stopped. */
  shut(): boolean {
    if (this.#isShut) return true;
    this.#isShut = this.#fd !== null && flowTerminal(this.#fd, false);
    return this.#isShut;
  }

  open(): void {
    if (!this.#isShut || this.#fd === null) return;
    this.#isShut = false;
    flowTerminal(this.#fd, true);
  }

  close(): void {
    this.open();
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }
}
