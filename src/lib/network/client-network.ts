/**
 * The networks for which a client address counts. An IPv6 client can choose any address of its /64, so the whole /64
 * counts as one client. Providers hand out a /56 or a /48 on request, which are 256 and 65,536 such clients, so these
 * count as well, with larger limits. An IPv4 address counts by itself, in any spelling.
 */
import { parseAddress } from "./address-class.ts";

export interface ClientNetwork {
  name: string;
  /** How many times the limit of one client the network has. */
  share: number;
}

/** Widest last. The shares leave room for several customers of a provider that gives each of them a /64. */
const IPV6_NETWORKS = [
  { bytes: 8, share: 1 },
  { bytes: 7, share: 4 },
  { bytes: 6, share: 16 },
] as const;

/** The number of networks of which `clientNetworks` tells, and of levels at which shares are kept. */
export const NETWORK_LEVELS = IPV6_NETWORKS.map(({ share }) => share);

/**
 * All networks, narrowest first: three of an IPv6 address, one of any other. A text that is no address, such as the
 * name of a workload's socket, is its own network.
 */
export function clientNetworks(address: string): [ClientNetwork, ...ClientNetwork[]] {
  const bytes = parseAddress(address);
  if (bytes?.length !== 16) return [{ name: bytes?.join(".") ?? address, share: 1 }];
  const [own, ...wider] = IPV6_NETWORKS;
  const named = ({ bytes: length, share }: (typeof IPV6_NETWORKS)[number]): ClientNetwork => ({
    name: Buffer.from(bytes.subarray(0, length)).toString("hex"),
    share,
  });
  return [named(own), ...wider.map(named)];
}

/** The name at each level of `NETWORK_LEVELS`: an IPv4 address is a member of every level. */
export function memberNames(address: string): string[] {
  const [own, ...wider] = clientNetworks(address);
  return NETWORK_LEVELS.map((_, level) => (level === 0 ? own : (wider[level - 1] ?? own)).name);
}
