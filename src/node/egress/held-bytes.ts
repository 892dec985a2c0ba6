/** Bytes of request bodies that the proxy holds before it sends them, bounded for each workload and for the server. */
export const HELD_BYTES_MAX = { workload: 16 * 2 ** 20, server: 256 * 2 ** 20 } as const;

/** The part of one request. */
export interface Hold {
  /** False when the bytes do not fit, or the request is over. */
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
        if (isOver || !this.#fits(uid, bytes)) return false;
        own += bytes;
        this.#add(uid, bytes);
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
