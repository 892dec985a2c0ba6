/**
 * Answers that were written and not yet taken by their clients, by the caller they were made for. A caller with many
 * unread bytes gets no further answers; when all callers together have too many, the oldest answer of the caller with
 * the most is cut.
 */
import type { Duplex } from "node:stream";
import { cutWhenStalled, isUnread } from "./stalled.ts";

/** Unread bytes of one caller. */
export const OWNER_BYTES_MAX = 16 * 1024 * 1024;
/** Unread bytes of all callers. */
const TOTAL_BYTES_MAX = 256 * 1024 * 1024;

export interface UnreadBounds {
  ownerBytes: number;
  totalBytes: number;
}

export class UnreadAnswers {
  readonly #bounds: UnreadBounds;
  /** In the order in which their answers were written. */
  readonly #sockets = new Map<string, Set<Duplex>>();

  constructor(bounds: Partial<UnreadBounds> = {}) {
    this.#bounds = { ownerBytes: OWNER_BYTES_MAX, totalBytes: TOTAL_BYTES_MAX, ...bounds };
  }

  get bytes(): number {
    let sum = 0;
    for (const owner of this.#sockets.keys()) sum += this.bytesOf(owner);
    return sum;
  }

  bytesOf(owner: string): number {
    let sum = 0;
    for (const { writableLength } of this.#sockets.get(owner) ?? []) sum += writableLength;
    return sum;
  }

  /** Whether this caller has room for another answer. */
  hasRoom(owner: string): boolean {
    return !this.#sockets.has(owner) || this.bytesOf(owner) < this.#bounds.ownerBytes;
  }

  /** Call when an answer was written to its end. */
  written(socket: Duplex, owner: string): void {
    if (!isUnread(socket)) return;
    cutWhenStalled(socket);
    const sockets = this.#sockets.get(owner) ?? new Set();
    this.#sockets.set(owner, sockets.add(socket));
    const over = (): void => {
      socket.off("drain", over);
      socket.off("close", over);
      sockets.delete(socket);
      if (sockets.size === 0 && this.#sockets.get(owner) === sockets) this.#sockets.delete(owner);
    };
    socket.on("drain", over);
    socket.on("close", over);
    if (this.bytes > this.#bounds.totalBytes) this.#cutOne();
  }

  #cutOne(): void {
    let most = "";
    for (const owner of this.#sockets.keys()) if (this.bytesOf(owner) > this.bytesOf(most)) most = owner;
    const [oldest] = this.#sockets.get(most) ?? [];
    oldest?.destroy();
  }
}
