/** Bytes of request bodies that the proxy holds before it sends them, bounded for each workload and for the server. */
export const HELD_BYTES_MAX = { workload: 16 * 2 ** 20, server: 256 * 2 ** 20 } as const;

/** What a chunk costs beside its bytes: a workload may send one byte at a time. */
const CHUNK_BYTES = 128;

/** The part of one request. */
export interface Hold {
  /** Takes one chunk. False when it does not fit, or the request is over. */
  take(bytes: number): boolean;
  /** May be called more than once. */
  release(): void;
}

export class HeldBytes {
  readonly #held = new Map<string, number>();
  #total = 0;

  open(uid: string): Hold {
    let [own, isOver] = [0, false];
    return {
      take: (bytes) => {
        const cost = bytes + CHUNK_BYTES;
        if (isOver || !this.#fits(uid, cost)) return false;
        own += cost;
        this.#add(uid, cost);
        return true;
      },
      release: () => {
        isOver = true;
        this.#add(uid, -own);
        own = 0;
      },
    };
  }

  #fits(uid: string, bytes: number): boolean {
    const ofWorkload = (this.#held.get(uid) ?? 0) + bytes;
    return ofWorkload <= HELD_BYTES_MAX.workload && this.#total + bytes <= HELD_BYTES_MAX.server;
  }

  #add(uid: string, bytes: number): void {
    const held = (this.#held.get(uid) ?? 0) + bytes;
    if (held > 0) this.#held.set(uid, held);
    else this.#held.delete(uid);
    this.#total += bytes;
  }
}
