/**
 * Requests and streams that are open, by workspace and by caller. Each holds two connections and, when its client does
 * not read, some of the workload's answer, so their number is limited. Callers without credentials are counted for
 * the workload that they use, apart from the workspace's own people and programs.
 */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Admitted } from "./admit.ts";
import type { GatewayLimits } from "./limits.ts";

type OpenMax = GatewayLimits["openMax"];

export class OpenExchanges {
  readonly #max: OpenMax;
  readonly #open = new Map<string, number>();

  constructor(max: OpenMax) {
    this.#max = max;
  }

  /** Returns what must be called at the end of the exchange. */
  enter({ workload, principal }: Pick<Admitted, "workload" | "principal">): () => void {
    const { workspace, uid } = workload;
    if (principal === null || principal.method === "public")
      return this.#enterAs([[`public ${uid}`, this.#max.workspace, "The workload"]]);
    return this.#enterAs([
      [`workspace ${workspace}`, this.#max.workspace, "The workspace"],
      [`caller ${workspace} ${principal.id}`, this.#max.caller, "This caller"],
    ]);
  }

  #enterAs(owners: readonly (readonly [key: string, max: number, name: string])[]): () => void {
    for (const [key, max, name] of owners)
      if ((this.#open.get(key) ?? 0) >= max)
        throw new GatewayError(
          "RATE_LIMITED",
          `${name} has ${max} requests open, as many as allowed. End some first.`,
          {
            headers: { "retry-after": "1" },
          },
        );
    for (const [key] of owners) this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    return () => {
      for (const [key] of owners) {
        const left = (this.#open.get(key) ?? 1) - 1;
        if (left > 0) this.#open.set(key, left);
        else this.#open.delete(key);
      }
    };
  }
}
