/**
 * Assigns addresses from the operator's pool; each address belongs to one egress IP of the whole platform. When the
 * pool is empty, the egress IP waits with a message and gets the next address that becomes free.
 */
import { isIPv4, isIPv6 } from "node:net";
import type { Transaction } from "../../store/database/database.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Modification } from "../../store/resources/resources.ts";
import type { Store } from "../../store/store.ts";
import type { Settings } from "../port.ts";

interface AddressDeps {
  store: Store;
  settings: Pick<Settings, "egressPool">;
}

const POOL = "egress-address";
/** Waiting egress IPs per round; the next round handles the rest. */
const WAITING_PAGE = 500;

/** Assigns an address to an egress IP that has none, or records why there is none. */
export async function assignAddress(tx: Transaction, resource: Resource, deps: AddressDeps): Promise<Modification> {
  const { store, settings } = deps;
  const family = resource.spec.ipFamily === "IPv6" ? "IPv6" : "IPv4";
  const matches = family === "IPv6" ? isIPv6 : isIPv4;
  const pool = [...new Set(settings.egressPool.filter(matches).map(canonical))];
  const address = await store.claims.takeFirst(tx, resource, POOL, pool);
  if (!address)
    return waiting(
      pool.length === 0
        ? `This server has no ${family} addresses to give: the setting egress_pool is without one.`
        : `All ${pool.length} ${family} addresses of this server are in use; this one waits for the next free one.`,
    );
  return {
    spec: { ...resource.spec, publicIp: address },
    status: "DEPLOYING",
    observedGeneration: resource.generation,
    event: {
      type: "reserved",
      message: `The address ${address} is reserved. The server is about to look whether traffic can leave from it.`,
    },
  };
}

/** Gives free addresses to the egress IPs that wait for one. */
export async function assignWaiting(deps: AddressDeps, signal?: AbortSignal): Promise<void> {
  const { resources } = deps.store;
  for (const { uid, workspace } of await resources.listUnsettledAcrossWorkspaces(["egressip"], WAITING_PAGE)) {
    if (signal?.aborted) return;
    await deps.store.write(async (tx) => {
      const current = await resources.modify(tx, workspace, uid, () => null);
      if (!current || current.deletedAt !== null || current.status !== "DEPLOYING") return;
      const change = await assignAddress(tx, current, deps);
      const sameNews = change.status === "DEPLOYING" && change.event?.message === current.events.at(-1)?.message;
      if (!sameNews) await resources.modify(tx, workspace, uid, () => change);
    });
  }
}

/** Canonical spelling, so that one IPv6 address cannot be assigned twice under two spellings. */
const canonical = (address: string): string =>
  isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;

/** The status stays unsettled, so that the next round finds the egress IP again. */
const waiting = (message: string): Modification => ({
  status: "DEPLOYING",
  observedGeneration: 0,
  event: { type: "waiting", message },
});
