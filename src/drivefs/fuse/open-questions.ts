/**
 * Questions of the kernel that are not answered yet. Each is answered once: by the server that has the files, or, when
 * the program that asked was killed, at once and with an error that nobody sees. Without that a killed program, and with
 * it its sandbox, would wait for a server that does not answer.
 */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { KernelRequest } from "./kernel.ts";

/** The kernel tells of the first signal only, which need not be the one that kills. */
const LOOK_MS = 250;
const KILLED = 1n << BigInt(constants.signals.SIGKILL - 1);

type Question = Pick<KernelRequest, "unique" | "pid">;

export class OpenQuestions {
  readonly #open = new Map<string, Question>();
  readonly #giveUp: (unique: Buffer) => void;

  constructor(giveUp: (unique: Buffer) => void) {
    this.#giveUp = giveUp;
  }

  add(question: Question): void {
    this.#open.set(keyOf(question.unique), question);
  }

  /** False when it was given up before. */
  end({ unique }: Question): boolean {
    return this.#open.delete(keyOf(unique));
  }

  /** The program that waits for this answer got a signal. */
  interrupt(unique: Buffer): void {
    const question = this.#open.get(keyOf(unique));
    if (!question) return;
    if (!isKilled(question.pid)) {
      setTimeout(() => this.interrupt(question.unique), LOOK_MS).unref();
      return;
    }
    this.end(question);
    this.#giveUp(question.unique);
  }
}

const keyOf = (unique: Buffer): string => unique.toString("latin1");

function isKilled(pid: number): boolean {
  try {
    const [, pending = "0"] = /^SigPnd:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return (BigInt(`0x${pending}`) & KILLED) !== 0n;
  } catch {
    return false; // of a process that cannot be seen from here
  }
}
