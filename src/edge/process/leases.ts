/**
 * Leases on instances. Before the first request to an instance this process claims it: the owner then neither freezes
 * it nor lets it go. The claim is kept for a moment after the last request, so that a busy instance costs no question
 * per request. The owner also learns how many requests are open, from which it scales workloads.
 */
import type { Duplex } from "node:stream";
import type { Instance } from "../../contract/instance.ts";
import { dialDaemon } from "../../gateway/daemon-dial.ts";
import type { GatewayDeps, InstanceLease, Workload } from "../../gateway/deps.ts";
import { dial } from "../../node/dial/dial.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import type { OpenCount } from "../messages.ts";
import type { Ask } from "./questions.ts";
import type { Routes } from "./routes.ts";

/** How long a claim outlives its last request. A sandbox falls asleep by so much later. */
const KEEP_MS = 250;
/** How often the owner is told of open requests. */
export const TELL_MS = 50;

interface Claim {
  open: number;
  /** As the owner was told last. */
  told: number;
  idleSinceMs: number;
}

interface OpenLease extends InstanceLease {
  workload: Workload;
  instance: Instance<Endpoint>;
}

export interface Leases extends Pick<GatewayDeps, "ready" | "dial"> {
  /** Changes since the last call. Gives back claims that are no longer used. */
  takeCounts(nowMs: number): OpenCount[];
}

export interface LeasesDeps {
  ask: Ask;
  routes: Routes;
  now?: () => number;
}

export function createLeases({ ask, routes, now = () => performance.now() }: LeasesDeps): Leases {
  const claims = new Map<string, Claim>();
  const asking = new Map<string, Promise<boolean>>();

  function leaseOn(workload: Workload, instance: Instance<Endpoint>, claim: Claim): OpenLease {
    claim.open += 1;
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      claim.open -= 1;
      claim.idleSinceMs = now();
    };
    return { key: instance.uid, workload, instance, release };
  }

  /** Requests that come meanwhile share the question: the owner counts one claim of a process on an instance. */
  function askFor(uid: string, copy: string): Promise<boolean> {
    const known = asking.get(copy);
    if (known) return known;
    const answer = ask("claim", { uid, copy })
      .then(({ value: runs }) => {
        if (runs) claims.set(copy, { open: 0, told: 0, idleSinceMs: now() });
        else routes.forget(uid);
        return runs;
      })
      .finally(() => asking.delete(copy));
    asking.set(copy, answer);
    return answer;
  }

  async function claimed(workload: Workload, instance: Instance<Endpoint>): Promise<OpenLease | null> {
    if (!claims.has(instance.uid)) await askFor(workload.uid, instance.uid);
    const claim = claims.get(instance.uid);
    return claim ? leaseOn(workload, instance, claim) : null;
  }

  /** The least busy instance, as far as this process knows. */
  function choose(workload: Workload, revision: string | null): Instance<Endpoint> | undefined {
    const openOf = (instance: Instance): number => claims.get(instance.uid)?.open ?? 0;
    let chosen: Instance<Endpoint> | undefined;
    for (const instance of routes.instancesOf(workload.uid)) {
      if (instance.revision !== revision) continue;
      if (chosen === undefined || openOf(instance) < openOf(chosen)) chosen = instance;
    }
    return chosen;
  }

  /** An ended copy stays known as running until the owner has looked; the request waits for the one that follows. */
  async function dialCopy(lease: OpenLease, port: number): Promise<Duplex> {
    const { workload, instance } = lease;
    try {
      return await dial(instance.endpoint, port);
    } catch (error) {
      const asked = { workload, copy: instance.uid, revision: instance.revision };
      const { value: next } = await ask("replacement", asked);
      const also = next && (await claimed(workload, next));
      if (!also) throw error;
      const release = lease.release;
      lease.release = () => {
        release();
        also.release();
      };
      return dial(also.instance.endpoint, port);
    }
  }

  async function endpointNow({ workload, instance }: OpenLease): Promise<Endpoint> {
    const known = routes.instancesOf(workload.uid);
    const [now] = known.length > 0 ? known : await routes.refresh(workload);
    return (now ?? instance).endpoint;
  }

  return {
    ready(workload, revision) {
      const chosen = choose(workload, revision);
      if (chosen === undefined) return null;
      const claim = claims.get(chosen.uid);
      return claim ? leaseOn(workload, chosen, claim) : claimed(workload, chosen);
    },
    dial(lease, door) {
      const on = lease as OpenLease;
      if (door === "api")
        return dialDaemon(
          () => endpointNow(on),
          (endpoint) => dial(endpoint, door),
        );
      return on.workload.revisions === null ? dial(on.instance.endpoint, door) : dialCopy(on, door);
    },
    takeCounts(nowMs) {
      const counts: OpenCount[] = [];
      for (const [copy, claim] of claims) {
        const ended = claim.open === 0 && nowMs - claim.idleSinceMs > KEEP_MS;
        if (ended) claims.delete(copy);
        if (ended || claim.open !== claim.told) counts.push({ copy, open: claim.open, ended });
        claim.told = claim.open;
      }
      return counts;
    },
  };
}
