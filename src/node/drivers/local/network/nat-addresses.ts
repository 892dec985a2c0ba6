/**
 * The addresses of workloads behind address translation. 198.18.0.0/15 is reserved for benchmarks of network devices, so
 * no real network uses it. Each platform takes a free block of 4,096 addresses, since several may run on one machine. The
 * IPv6 addresses of a block are private (fd00::/8), with `berth` in letters.
 */
import { networkInterfaces } from "node:os";

export const IPV4_PREFIX = 20;
export const IPV6_PREFIX = 64;
const BLOCKS = 32;
const BLOCK_ADDRESSES = 4096;
const FIRST = (198 << 24) | (18 << 16);

export interface HostAddresses {
  ipv4: string;
  /** Null where workloads have no IPv6. */
  ipv6: string | null;
}

/** Most workloads of a platform; each has a slot. */
export const SLOTS_MAX = 4000;

/** 4,096 addresses: 0 is the network itself, 1 the gateway; workloads follow by slot. */
export class AddressBlock {
  readonly #number: number;
  readonly #hasIpv6: boolean;
  readonly network: string;
  readonly gateway: HostAddresses;
  /** Of the bridge. Without one of its own the bridge takes the address of a port, and changes it when the port goes. */
  readonly mac: string;

  constructor(number: number, hasIpv6: boolean) {
    this.#number = number;
    this.#hasIpv6 = hasIpv6;
    this.network = `${ipv4Of(number, 0)}/${IPV4_PREFIX}`;
    this.gateway = this.#host(1);
    this.mac = `02:62:72:74:68:${number.toString(16).padStart(2, "0")}`;
  }

  readonly slots = SLOTS_MAX;

  ofSlot(slot: number): HostAddresses {
    return this.#host(slot + 2);
  }

  /** The hardware address of a workload's interface; ends with its IPv4 address. */
  macOf(slot: number): string {
    const bytes = this.ofSlot(slot).ipv4.split(".").map(Number);
    return ["02", "62", ...bytes.map((byte) => byte.toString(16).padStart(2, "0"))].join(":");
  }

  #host(host: number): HostAddresses {
    const ipv6 = `fd62:6572:7468:${this.#number.toString(16)}::${host.toString(16)}`;
    return { ipv4: ipv4Of(this.#number, host), ipv6: this.#hasIpv6 ? ipv6 : null };
  }
}

/** The number of the block that the bridge has, otherwise the first that no interface uses. */
export function chooseBlock(bridge: string): number {
  const interfaces = networkInterfaces();
  const blockOf = (address: string): number =>
    Array.from({ length: BLOCKS }, (_, block) => block).find((block) => ipv4Of(block, 1) === address) ?? -1;
  const own = interfaces[bridge]?.map(({ address }) => blockOf(address)).find((block) => block >= 0);
  if (own !== undefined) return own;
  const taken = new Set(
    Object.values(interfaces).flatMap((each) => each?.map(({ address }) => blockOf(address)) ?? []),
  );
  for (let block = 0; block < BLOCKS; block++) if (!taken.has(block)) return block;
  throw new Error("all of 198.18.0.0/15 is in use");
}

function ipv4Of(block: number, host: number): string {
  const address = FIRST + block * BLOCK_ADDRESSES + host;
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
}
