/**
 * Finds out which egress IPs traffic of this server can leave from, and records that: in the state and the status of each
 * egress IP and of its gateway. Looks at the start, after every change of an egress IP or a gateway, and periodically,
 * because the operator changes the addresses of the machine without telling the server.
 */
import type { Running } from "../../lib/lifecycle.ts";
import { type Clock, HOUR_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Modification } from "../../store/resources/resources.ts";
import type { Store } from "../../store/store.ts";
import { egressGateway } from "../egress-gateway/kind.ts";
import { type Holding, type Holdings, holdingsOf, isDeployed } from "./holdings.ts";
import { egressIp } from "./kind.ts";

const LOOK_EVERY_MS = 10 * SECOND_MS;
/** A probe that saw the address is believed for this long. */
const PROBE_AGAIN_MS = HOUR_MS;
const PAGE = 100;

/** How an address was found usable, or why not. */
export interface Proof {
  outcome: Holding["outcome"];
  by: "route" | "probe";
  message: string;
}

export interface EgressDeploymentOptions {
  store: Pick<Store, "resources">;
  clock: Clock;
  node: string;
  /** Whether a server was heard of lately. */
  isLive(node: string): boolean;
  /** `isProven`: a probe saw the address lately, so only the machine is asked. */
  prove(address: string, isProven: boolean): Promise<Proof>;
  onError(error: unknown): void;
}

export interface EgressDeployment extends Running {
  look(): Promise<void>;
}

export function startEgressDeployment(options: EgressDeploymentOptions): EgressDeployment {
  const { store, clock, node, isLive, prove, onError } = options;
  const { resources } = store;
  let stopped = false;
  let turn: Promise<void> = Promise.resolve();
  let waits = false;

  async function* every(kind: string): AsyncGenerator<Resource[]> {
    let after = "";
    for (;;) {
      const page = await resources.listAcrossWorkspaces(kind, after, PAGE);
      if (page.length > 0) yield page.filter(({ deletedAt, retired }) => deletedAt === null && !retired);
      if (page.length < PAGE) return;
      after = page.at(-1)?.uid ?? "";
    }
  }

  async function holdingHere(address: string, before: Holding | undefined): Promise<Holding> {
    const probedAt = before?.outcome === "held" ? before.probedAt : undefined;
    const isProven = probedAt !== undefined && clock.now() - probedAt < PROBE_AGAIN_MS;
    const { outcome, by, message } = await prove(address, isProven);
    if (outcome !== "held") return { outcome, message };
    if (isProven && before) return before;
    return { outcome, message, ...(by === "probe" ? { probedAt: clock.now() } : {}) };
  }

  async function lookAtIp(ip: Resource): Promise<void> {
    const address = ip.spec.publicIp;
    if (typeof address !== "string") return;
    const found = await holdingHere(address, holdingsOf(ip)[node]);
    if (stopped) return;
    await resources.update(ip.workspace, ip.uid, (current) => {
      if (current.deletedAt !== null || current.retired || current.spec.publicIp !== address) return null;
      const before = holdingsOf(current);
      const others = Object.entries(before).filter(([other]) => other !== node && isLive(other));
      const holdings: Holdings = { ...Object.fromEntries(others), [node]: found };
      const status = statusOf(holdings);
      const isNews = before[node]?.message !== found.message || current.status !== status;
      const isChange = isNews || Object.keys(before).length !== Object.keys(holdings).length;
      if (!isChange && before[node]?.probedAt === found.probedAt) return null;
      return changed(current, { state: { ...current.state, holdings }, status }, isNews ? found.message : null);
    });
  }

  async function lookAtGateway(gateway: Resource): Promise<void> {
    const ips = (await resources.childrenOf(gateway.workspace, gateway.uid, egressIp.name)).filter(isDeployed);
    const addresses = ips.map(({ spec }) => spec.publicIp).join(", ");
    const status = addresses === "" ? "DEPLOYING" : "DEPLOYED";
    const message =
      addresses === ""
        ? "The gateway has no egress IP that traffic leaves from; workloads behind the gateway reach nothing."
        : `Workloads behind the gateway leave from ${addresses}.`;
    if (stopped) return;
    await resources.update(gateway.workspace, gateway.uid, (current) => {
      if (current.deletedAt !== null || current.retired) return null;
      const isTold = current.status === status && current.state.leaves === addresses;
      return isTold ? null : changed(current, { state: { ...current.state, leaves: addresses }, status }, message);
    });
  }

  async function look(): Promise<void> {
    for await (const page of every(egressIp.name)) await Promise.all(page.map(lookAtIp));
    for await (const page of every(egressGateway.name)) await Promise.all(page.map(lookAtGateway));
  }

  /** Looks that were asked for during a look become one. */
  function ask(): Promise<void> {
    if (waits || stopped) return turn;
    waits = true;
    turn = turn.then(() => {
      waits = false;
      return stopped ? undefined : look().catch(onError);
    });
    return turn;
  }

  const unsubscribe = resources.onChange((kind) => {
    if (kind === egressIp.name || kind === egressGateway.name) void ask();
  });
  const timer = setInterval(() => void ask(), LOOK_EVERY_MS).unref();
  void ask();
  return {
    look: ask,
    async stop() {
      stopped = true;
      clearInterval(timer);
      unsubscribe();
      await turn;
    },
  };
}

function statusOf(holdings: Holdings): string {
  const outcomes = Object.values(holdings).map(({ outcome }) => outcome);
  if (outcomes.includes("held")) return "DEPLOYED";
  return outcomes.includes("failed") ? "FAILED" : "DEPLOYING";
}

const EVENT_TYPES: Record<string, string> = { DEPLOYED: "deployed", FAILED: "failed", DEPLOYING: "waiting" };

const changed = (
  { generation }: Resource,
  { state, status }: { state: Record<string, unknown>; status: string },
  message: string | null,
): Modification => ({
  ...{ state, status, observedGeneration: generation },
  ...(message === null ? {} : { event: { type: EVENT_TYPES[status] ?? "waiting", message } }),
});
