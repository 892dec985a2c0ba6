/** Instances that one edge process has claimed, counted as open requests of this server. */
import type { InstanceLease } from "../../gateway/deps.ts";
import type { OpenCount } from "../messages.ts";

export type Claim = (uid: string, copy: string) => InstanceLease | null;

export class Claims {
  readonly #claim: Claim;
  readonly #held = new Map<string, { uid: string; leases: InstanceLease[] }>();

  constructor(claim: Claim) {
    this.#claim = claim;
  }

  /** False when the instance no longer runs. A repeated claim changes nothing. */
  take(uid: string, copy: string): boolean {
    if (this.#held.has(copy)) return true;
    const lease = this.#claim(uid, copy);
    if (lease === null) return false;
    this.#held.set(copy, { uid, leases: [lease] });
    return true;
  }

  /** One lease stands for the claim also while no request is open. */
  count({ copy, open, ended }: OpenCount): void {
    const held = this.#held.get(copy);
    if (!held) return;
    const wanted = ended ? 0 : Math.max(open, 1);
    while (held.leases.length > wanted) held.leases.pop()?.release();
    while (held.leases.length < wanted) {
      const lease = this.#claim(held.uid, copy);
      if (lease === null) break; // it ends, and its requests with it
      held.leases.push(lease);
    }
    if (ended) this.#held.delete(copy);
  }

  /** The process is gone, and its requests with it. */
  release(): void {
    for (const { leases } of this.#held.values()) for (const lease of leases) lease.release();
    this.#held.clear();
  }
}
