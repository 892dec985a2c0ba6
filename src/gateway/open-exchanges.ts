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

  /** Returns what must be called at the end of the exchange. `address` is the client's. */
  enter({ workload, principal }: Pick<Admitted, "workload" | "principal">, address: string): () => void {
    const { workspace, uid } = workload;
    if (this.#server.enter(workspace) !== null)
      throw new GatewayError("OVERLOADED", "The server has as many requests open as it takes.", RETRY);
    const isPublic = principal === null || principal.method === "public";
    const key = isPublic ? `public ${uid}` : `workspace ${workspace}`;
    const member = isPublic ? clientNetwork(address) : principal.id;
    const { workspace: max, caller } = this.#max;
    const places = this.#places.get(key) ?? new FairShares(max, isPublic ? max : caller);
    const refusal = places.enter(member);
    if (refusal !== null) {
      this.#server.leave(workspace);
      throw new GatewayError("RATE_LIMITED", reasonOf(refusal, places, isPublic ? "workload" : "workspace"), RETRY);
    }
    this.#places.set(key, places);
    return () => {
      this.#server.leave(workspace);
      places.leave(member);
      if (places.total === 0 && this.#places.get(key) === places) this.#places.delete(key);
    };
  }
}

const RETRY = { headers: { "retry-after": "1" } };

function reasonOf(refusal: Refusal, { max, memberMax }: FairShares, what: string): string {
  switch (refusal) {
    case "full":
      return `The ${what} has ${max} requests open, as many as allowed. End some first.`;
    case "member":
      return `This caller has ${memberMax} requests open, as many as allowed. End some first.`;
    case "share":
      return `The ${what} has nearly as many requests open as allowed (${max}), and this caller has its share. End some first.`;
  }
}
