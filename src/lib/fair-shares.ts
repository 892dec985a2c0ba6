/**
 * A number of places that several members share. While most places are free, a member may take as many as it likes;
 * from `CALM` on, a member that has its even share of all places gets no more. So one member can use what is idle, and
 * cannot keep the others out.
 */

/** Share of the places up to which nobody is counted out. The rest is for members that have little. */
const CALM = 3 / 4;

/** Why a member gets no place: all are taken, this member has as many as one may have, or it has its even share. */
export type Refusal = "full" | "member" | "share";

export class FairShares {
  readonly max: number;
  readonly memberMax: number;
  #total = 0;
  readonly #members = new Map<string, number>();

  constructor(max: number, memberMax = max) {
    this.max = max;
    this.memberMax = memberMax;
  }

  get total(): number {
    return this.#total;
  }

  heldBy(member: string): number {
    return this.#members.get(member) ?? 0;
  }

  /** Takes a place; null when the member got it. */
  enter(member: string, evenShare?: number): Refusal | null {
    const refusal = this.refusalFor(member, evenShare);
    if (refusal !== null) return refusal;
    this.#members.set(member, (this.#members.get(member) ?? 0) + 1);
    this.#total += 1;
    return null;
  }

  /** Why the member would get no place now; null when it would. */
  refusalFor(member: string, evenShare = this.evenShareOf(member)): Refusal | null {
    const held = this.heldBy(member);
    if (this.#total >= this.max) return "full";
    if (this.#total >= this.max * CALM && held >= evenShare) return "share";
    return held >= this.memberMax ? "member" : null;
  }

  leave(member: string): void {
    const held = this.#members.get(member);
    if (held === undefined) return;
    this.#total -= 1;
    if (held > 1) this.#members.set(member, held - 1);
    else this.#members.delete(member);
  }

  /** At least one, so that the free rest is given to whoever has nothing. */
  evenShareOf(member: string): number {
    return Math.max(1, Math.floor(this.max / (this.#members.size + (this.heldBy(member) === 0 ? 1 : 0))));
  }
}
