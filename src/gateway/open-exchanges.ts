/**
 * Requests and streams that are open. Each holds two connections and, when its client does not read, some of the
 * workload's answer, so their number is limited: workspaces share the server, callers share their workspace. Callers
 * without credentials share the workload that they use, by their address, apart from the workspace's own people and
 * programs.
 */
import { GatewayError } from "../contract/gateway-errors.ts";
import { FairShares, type Refusal } from "../lib/fair-shares.ts";
import { clientNetwork } from "../lib/network/client-network.ts";
import type { Admitted } from "./admit.ts";
import type { GatewayLimits } from "./limits.ts";

type OpenMax = GatewayLimits["openMax"];
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
  readonly #server: FairShares;
  /** By workspace, and by public workload. */
  readonly #places = new Map<string, FairShares>();

  constructor(max: OpenMax) {
    this.#max = max;
    this.#server = new FairShares(max.server);
  }

  get total(): number {
    return this.#server.total;
  }

  /** Whether one more exchange may begin. */
  hasRoom(entering: Entering, address: string): boolean {
    const { places, member } = this.#placesFor(entering, address);
    return this.#server.refusalFor(entering.workload.workspace) === null && places.refusalFor(member) === null;
  }

  /** Returns what must be called at the end of the exchange. `address` is the client's. */
  enter(entering: Entering, address: string): () => void {
    const { workspace } = entering.workload;
    if (this.#server.enter(workspace) !== null)
      throw new GatewayError("OVERLOADED", "The server has as many requests open as it takes.", RETRY);
    const { places, key, member, what } = this.#placesFor(entering, address);
    const refusal = places.enter(member);
    if (refusal !== null) {
      this.#server.leave(workspace);
      throw new GatewayError("RATE_LIMITED", reasonOf(refusal, places, what, this.#max.isShare ?? false), RETRY);
    }
    this.#places.set(key, places);
    return () => {
      this.#server.leave(workspace);
      places.leave(member);
      if (places.total === 0 && this.#places.get(key) === places) this.#places.delete(key);
    };
  }

  #placesFor({ workload, principal }: Entering, address: string) {
    const isPublic = principal === null || principal.method === "public";
    const key = isPublic ? `public ${workload.uid}` : `workspace ${workload.workspace}`;
    const member = isPublic ? clientNetwork(address) : principal.id;
    const { workspace: max, caller } = this.#max;
    const places = this.#places.get(key) ?? new FairShares(max, isPublic ? max : caller);
    return { places, key, member, what: isPublic ? "workload" : "workspace" };
  }
}

const RETRY = { headers: { "retry-after": "1" } };

function reasonOf(refusal: Refusal, { max, memberMax }: FairShares, what: string, isShare: boolean): string {
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
