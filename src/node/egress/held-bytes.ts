/**
 * Bytes of request bodies that the proxy holds before it sends them. They are bounded for each workload, for each
 * workspace and for the server, and each body is held for a limited time: bodies that are never finished would keep the
 * room from others.
 */
const MB = 2 ** 20;
/** A workspace has a quarter of the server, so that no tenant alone refuses the bodies of the others. */
export const HELD_BYTES_MAX = { workload: 16 * MB, workspace: 64 * MB, server: 256 * MB } as const;

/** Bodies up to 1 MB are held: 17 KB/s is slower than any network that programs call APIs over. */
const HELD_MS = 60_000;

/** What a chunk costs beside its bytes: a workload may send one byte at a time. */
const CHUNK_BYTES = 128;

/** The part of one request. */
export interface Hold {
  /** Takes one chunk. False when it does not fit, or the request is over. The time begins with the first chunk. */
  take(bytes: number): boolean;
  /** Called once when the time is over before the release. */
  onLate: () => void;
  /** May be called more than once. */
  release(): void;
}

/** Whose bytes are held; a workload that is on nobody's record has no workspace. */
export interface Holder {
  uid: string;
  workspace: string | null;
}

export class HeldBytes {
  readonly #heldMs: number;
  /** By workload and by workspace; the names of the two never meet. */
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(heldMs = HELD_MS) {
    this.#heldMs = heldMs;
  }

  open({ uid, workspace }: Holder): Hold {
    let [own, isOver] = [0, false];
    let timer: NodeJS.Timeout | undefined;
    const shares: Share[] = [
      { key: `workload ${uid}`, bytesMax: HELD_BYTES_MAX.workload },
      ...(workspace === null ? [] : [{ key: `workspace ${workspace}`, bytesMax: HELD_BYTES_MAX.workspace }]),
    ];
    const hold: Hold = {
      onLate: () => {},
      take: (bytes) => {
        const cost = bytes + CHUNK_BYTES;
        if (isOver || !this.#fits(shares, cost)) return false;
        timer ??= setTimeout(() => hold.onLate(), this.#heldMs).unref();
        own += cost;
        this.#add(shares, cost);
        return true;
      },
      release: () => {
        clearTimeout(timer);
        isOver = true;
        this.#add(shares, -own);
        own = 0;
      },
    };
    return hold;
  }

  #fits(shares: readonly Share[], bytes: number): boolean {
    const isIn = ({ key, bytesMax }: Share): boolean => (this.#held.get(key) ?? 0) + bytes <= bytesMax;
    return this.#total + bytes <= HELD_BYTES_MAX.server && shares.every(isIn);
  }

  #add(shares: readonly Share[], bytes: number): void {
    for (const { key } of shares) {
      const held = (this.#held.get(key) ?? 0) + bytes;
      if (held > 0) this.#held.set(key, held);
      else this.#held.delete(key);
    }
    this.#total += bytes;
  }
}

interface Share {
  key: string;
  bytesMax: number;
}
