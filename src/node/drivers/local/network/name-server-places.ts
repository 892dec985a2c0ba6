/** Places at the name server: bounded for a workload, for a tenant with all its workloads, and in all. */
import { FairShares } from "../../../../lib/fair-shares.ts";

export interface Bounds {
  all: number;
  /** With many tenants the places are shared evenly, which may be less. */
  tenant: number;
  asker: number;
}

export class Places {
  readonly #tenants: FairShares;
  readonly #askers: FairShares;
  readonly #tenantOf: (asker: string) => string;

  constructor({ all, tenant, asker }: Bounds, tenantOf: (asker: string) => string) {
    this.#tenants = new FairShares(all, tenant);
    this.#askers = new FairShares(Number.POSITIVE_INFINITY, asker);
    this.#tenantOf = tenantOf;
  }

  /** Takes a place; the function gives it back. Null when the workload or its tenant has its share already. */
  enter(asker: string): (() => void) | null {
    const tenant = this.#tenantOf(asker);
    if (this.#askers.refusalFor(asker) !== null || this.#tenants.enter(tenant) !== null) return null;
    this.#askers.enter(asker);
    return () => {
      this.#askers.leave(asker);
      this.#tenants.leave(tenant);
    };
  }
}
