/**
 * Requests and connections end with the rights that opened them. When identities, workloads or previews change, the
 * rights of everything that is open are looked at again, in one pass for all of them. Another pass now and then
 * finds credentials whose time is over.
 */
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";

/** Rights looked at before other work gets a turn: answers from a cache take none by themselves. */
const RIGHTS_PER_TURN = 100;
/** Rest after a pass, as a multiple of its length: a caller who changes keys in a loop takes no more of the server. */
const REST_FACTOR = 4;

/** The right behind an open request or connection. */
export interface OpenRight {
  /** Uid of the workload. */
  readonly uid: string;
  /** Whether it came by an address that leads to the workload while another resource says so, such as a preview. */
  readonly isClaimed: boolean;
  /** Whether the same request would be admitted now. */
  stands(): Promise<boolean>;
}

/** What is open. */
export interface Revocable {
  readonly right: OpenRight | null;
  revoke(): void;
}

/** Everything may have changed, or what claimed addresses lead to, or the workload with this uid. */
export type RightsChange = "all" | "claims" | { uid: string };

export class OpenRights {
  readonly #open: () => Iterable<Revocable>;
  readonly #timer: NodeJS.Timeout;
  #due = new Due();
  #isPassing = false;
  #isStopped = false;

  constructor(open: () => Iterable<Revocable>, passMs: number) {
    this.#open = open;
    this.#timer = setInterval(() => this.changed("all"), passMs).unref();
  }

  changed(change: RightsChange): void {
    this.#due.add(change);
    if (!this.#isPassing && !this.#isStopped) void this.#pass();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  async #pass(): Promise<void> {
    this.#isPassing = true;
    while (!this.#due.isEmpty && !this.#isStopped) {
      // Caches hear of the same change, and changes that come together are one pass.
      await nextTurn();
      const due = this.#due;
      this.#due = new Due();
      const begunMs = performance.now();
      await this.#look(due);
      await pause((performance.now() - begunMs) * REST_FACTOR, undefined, { ref: false });
    }
    this.#isPassing = false;
  }

  async #look(due: Due): Promise<void> {
    let looked = 0;
    for (const one of [...this.#open()]) {
      if (one.right === null || !due.has(one.right)) continue;
      looked += 1;
      if (looked % RIGHTS_PER_TURN === 0) await nextTurn();
      // What cannot be looked up now, because the database does not answer, is looked up in the next pass.
      if (!(await one.right.stands().catch(() => true))) one.revoke();
    }
  }
}

/** The rights that wait to be looked at. */
class Due {
  #isAll = false;
  #areClaims = false;
  readonly #uids = new Set<string>();

  get isEmpty(): boolean {
    return !this.#isAll && !this.#areClaims && this.#uids.size === 0;
  }

  add(change: RightsChange): void {
    if (change === "all") this.#isAll = true;
    else if (change === "claims") this.#areClaims = true;
    else this.#uids.add(change.uid);
  }

  has({ uid, isClaimed }: OpenRight): boolean {
    return this.#isAll || (this.#areClaims && isClaimed) || this.#uids.has(uid);
  }
}
