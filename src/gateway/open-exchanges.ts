/**
 * Requests and streams that are open. Each holds two connections and, when its client does not read, some of the
 * workload's answer, so their number is limited: workspaces share the server, callers share their workspace. Strangers,
 * who have no credentials, share the workload that they use, by their address, apart from the workspace's own people and
 * programs; and all strangers together share a part of the server, so that callers with credentials find the rest.
 */
import { GatewayError } from "../contract/gateway-errors.ts";
import { FairShares, type Refusal } from "../lib/fair-shares.ts";
import { NetworkShares, networkMax } from "../lib/network/network-shares.ts";
import type { Admitted } from "./admit.ts";
import type { GatewayLimits } from "./limits.ts";

type OpenMax = GatewayLimits["openMax"];
/** Part of the server's places that strangers get. */
const STRANGERS = 3 / 4;

type Entering = Pick<Admitted, "workload" | "principal">;

/**
 * Splits the limits between `processes` edge processes and their owner, so that all together never open more than
 * `max`: an edge process hands a request above its share to the owner, which has the other half.
 */
export function sharesOf(max: OpenMax, processes: number): { edge: OpenMax; owner: OpenMax } {
  if (processes === 0) return { edge: max, owner: max };
  const each = (whole: number): number => Math.floor(whole / (2 * processes));
  const rest = (whole: number): number => whole - processes * each(whole);
  const split = (part: (whole: number) => number): OpenMax => ({
    ...{ server: part(max.server), workspace: part(max.workspace), caller: part(max.caller), isShare: true },
  });
  return { edge: split(each), owner: split(rest) };
}

export class OpenExchanges {
  readonly #max: OpenMax;
  /** By workspace, and by the strangers of a workspace. */
  readonly #server: FairShares;
  /** By network. One gets as much of the whole server as of one workload; wider ones more. */
  readonly #strangers: NetworkShares;
  /** By workspace, and by public workload. */
  readonly #places = new Map<string, Places>();

  constructor(max: OpenMax) {
    this.#max = max;
    this.#server = new FairShares(max.server);
    const strangers = Math.ceil(max.server * STRANGERS);
    const memberMax = (share: number): number => Math.min(max.workspace * share, networkMax(strangers));
    this.#strangers = new NetworkShares(strangers, memberMax);
  }

  get total(): number {
    return this.#server.total;
  }

  /** Whether one more exchange may begin. */
  hasRoom(entering: Entering, address: string): boolean {
    return this.#wantedBy(entering, address).every(({ places, member }) => places.refusalFor(member) === null);
  }

  /** Returns what must be called at the end of the exchange. `address` is the client's. */
  enter(entering: Entering, address: string): () => void {
    const wanted = this.#wantedBy(entering, address);
    for (const { places, member, what } of wanted) {
      const refusal = places.refusalFor(member);
      if (refusal === null) continue;
      if (what === "server" && refusal !== "member")
        throw new GatewayError("OVERLOADED", "The server has as many requests open as it takes.", RETRY);
      throw new GatewayError("RATE_LIMITED", reasonOf(refusal, places, what, this.#max.isShare ?? false), RETRY);
    }
    for (const { places, member, key } of wanted) {
      places.enter(member);
      if (key !== null) this.#places.set(key, places);
    }
    return () => {
      for (const { places, member, key } of wanted) {
        places.leave(member);
        if (key !== null && places.total === 0 && this.#places.get(key) === places) this.#places.delete(key);
      }
    };
  }

  /** Every place that the exchange needs. */
  #wantedBy({ workload, principal }: Entering, address: string): Wanted[] {
    const { workspace, uid } = workload;
    const { workspace: max, caller } = this.#max;
    if (principal !== null && principal.method !== "public") {
      const key = `workspace ${workspace}`;
      return [
        { places: this.#server, member: workspace, key: null, what: "server" },
        { places: this.#places.get(key) ?? new FairShares(max, caller), member: principal.id, key, what: "workspace" },
      ];
    }
    const key = `public ${uid}`;
    return [
      { places: this.#server, member: `public ${workspace}`, key: null, what: "server" },
      { places: this.#strangers, member: address, key: null, what: "server" },
      { places: this.#places.get(key) ?? new NetworkShares(max), member: address, key, what: "workload" },
    ];
  }
}

type Places = Pick<FairShares, "max" | "memberMax" | "total" | "refusalFor" | "leave"> & {
  enter(member: string): Refusal | null;
};

interface Wanted {
  places: Places;
  member: string;
  /** Under which the places are kept while anybody has one; null for those of the server. */
  key: string | null;
  what: "server" | "workspace" | "workload";
}

const RETRY = { headers: { "retry-after": "1" } };

function reasonOf(refusal: Refusal, { max, memberMax }: Places, what: string, isShare: boolean): string {
  const allowed = isShare ? "the share of one process of this server" : "as many as allowed";
  switch (refusal) {
    case "full":
      return `The ${what} has ${max} requests open, ${allowed}. End some first.`;
    case "member":
      return `This caller has ${memberMax} requests open, ${allowed}. End some first.`;
    case "share":
      return `The ${what} has nearly as many requests open as allowed (${max}), and this caller has its share. End some first.`;
  }
}
