/** The right of an admitted request, for as long as the request or its connection is open. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { OpenRight } from "../http/open-rights.ts";
import type { WorkloadRoute } from "../http/route.ts";
import { type Admitted, targetOf } from "./admit.ts";
import type { FindAgain, GatewayDeps, Workload } from "./deps.ts";
import { enter } from "./http-trigger.ts";

const CLAIMED: ReadonlySet<WorkloadRoute["to"]> = new Set(["preview", "domain", "trigger"]);

const NOT_FOUND = 404;

export class AdmittedRight implements OpenRight {
  readonly #deps: GatewayDeps;
  readonly #route: WorkloadRoute;
  readonly #admitted: Pick<Admitted, "workload" | "token">;
  readonly #again: FindAgain | null;

  /** `again` finds a caller whom a façade has found. */
  constructor(deps: GatewayDeps, route: WorkloadRoute, { workload, token }: Admitted, again: FindAgain | null) {
    this.#deps = deps;
    this.#route = route;
    this.#admitted = { workload, token };
    this.#again = again;
  }

  get uid(): string {
    return this.#admitted.workload.uid;
  }

  get isClaimed(): boolean {
    return CLAIMED.has(this.#route.to);
  }

  async stands(): Promise<boolean> {
    try {
      const now = await this.#workload();
      return now !== null && (await this.#isAdmitted(now));
    } catch (error) {
      if (error instanceof GatewayError && error.status === NOT_FOUND) return false;
      throw error;
    }
  }

  /** Null when the address leads elsewhere now. */
  async #workload(): Promise<Workload | null> {
    const { workload: before } = this.#admitted;
    const found = await this.#deps.resolve(targetOf(this.#route));
    // An edge process is told nothing about workloads that it does not forward to at the moment.
    if (found?.uid === "") return before.preview === null ? before : null;
    if (found?.uid !== before.uid || found.preview?.id !== before.preview?.id) return null;
    return enter(this.#route, found).workload;
  }

  async #isAdmitted(now: Workload): Promise<boolean> {
    const { authorize, clock, stillAllowed } = this.#deps;
    const { token } = this.#admitted;
    const { preview } = now;
    if (preview !== null) {
      if (preview.untilMs <= clock.now()) return false;
      return preview.public || (token !== null && (await preview.checkToken(token)));
    }
    if (now.public) return true;
    if (token !== null) return stillAllowed(token, now);
    const principal = (await this.#again?.()) ?? null;
    return principal !== null && (await authorize(principal, now));
  }
}
