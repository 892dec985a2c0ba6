/**
 * The packet filter of workloads behind address translation: one nftables table per platform. The table is replaced as a
 * whole at every start, so nothing of an earlier server stays; then each workload gets its way out, live.
 *
 *   free, free6        workloads that go straight to the outside
 *   routed6            workloads without a gateway that reach IPv6 networks of the operator, from the machine's own address
 *   dedicated          workloads that leave from addresses of an egress gateway
 *   leave4, leave6     the chain of such a workload, which chooses its source address
 *   open4, open6       how many connections each workload has open
 *   leaves4, leaves6   pairs of workload and source address; packets of older connections from other sources are dropped
 *   names, named       questions for names and their answers, which take no place in the kernel's table of connections
 *
 * The sets of VPCs are in nat-vpc.ts.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { SourceAddresses, SourceChoice } from "../../../../lib/network/egress/source-addresses.ts";
import type { WorkloadVpc } from "../../../../lib/network/egress/workload-vpc.ts";
import type { AddressBlock, HostAddresses } from "./nat-addresses.ts";
import { NatVpcs, neighbourChains, routeRules, VPC_SETS } from "./nat-vpc.ts";
import { feed, run } from "./tools.ts";

/** Ports of the gateway that connections of workloads with rules are led to. */
export interface Led {
  http: number;
  https: number;
}

/** How the packets of a workload leave. */
export interface Way {
  /** Straight to the outside; otherwise the filter leads TCP to ports 80 and 443 to the proxy and drops all else. */
  isOpen: boolean;
  /** Null: the machine chooses the source address. */
  sources: SourceAddresses | null;
  /** Null: the workload reaches no other workload and no network of the operator. */
  vpc: WorkloadVpc | null;
}

/** Connections of one workload at once, half-open ones among them: the kernel's table is for all workloads. */
export const CONNECTIONS_MAX = 4096;

export const CLOSED: Way = { isOpen: false, sources: null, vpc: null };

export class NatFilter {
  readonly #table: string;
  readonly #bridge: string;
  readonly #block: AddressBlock;
  readonly #ways = new Map<string, Way>();
  readonly #vpcs: NatVpcs;
  #forwardsIpv6 = false;

  constructor(name: string, bridge: string, block: AddressBlock) {
    this.#table = `inet workloads_${name.replace(/\W/g, "_")}`;
    this.#bridge = bridge;
    this.#block = block;
    this.#vpcs = new NatVpcs(this.#table);
  }

  /**
   * Replaces the table. Without `led` no workload has rules, and all are free. Returns what the machine lacks, or an empty
   * text: some kernels cannot count connections.
   */
  async open(led: Led | null, connectionsMax = CONNECTIONS_MAX): Promise<string> {
    let missing = "";
    await feed("nft", ["-f", "-"], this.#whole(led, connectionsMax)).catch(async (error: Error) => {
      await feed("nft", ["-f", "-"], this.#whole(led, null));
      missing = `Open connections of workloads are not limited (${error.message.split("\n")[0]}).`;
    });
    writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
    return missing;
  }

  /** One transaction: no packet of the workload sees half of a change. */
  async set(workload: HostAddresses, way: Way): Promise<void> {
    const before = this.#ways.get(workload.ipv4) ?? CLOSED;
    if (JSON.stringify(before) === JSON.stringify(way)) return;
    if ((way.sources?.ipv6.length || way.vpc) && workload.ipv6 !== null) this.#forwardIpv6();
    const left = before.vpc && this.#vpcs.leave(workload, before.vpc, before.isOpen);
    const entered = way.vpc && this.#vpcs.enter(workload, way.vpc, way.isOpen);
    const changes = [
      ...this.#elements("delete", workload, before),
      ...(left?.commands ?? []),
      ...this.#elements("add", workload, way),
      ...(entered?.commands ?? []),
    ];
    try {
      if (changes.length > 0) await feed("nft", ["-f", "-"], changes.join("\n"));
    } catch (error) {
      entered?.undo();
      left?.undo();
      throw error;
    }
    this.#ways.set(workload.ipv4, way);
  }

  /** Addresses of workloads that got packets from other workloads in the last seconds. */
  async talking(): Promise<string[]> {
    if (!this.#vpcs.areInternal) return [];
    const sets = ["talking4", ...(this.#block.gateway.ipv6 === null ? [] : ["talking6"])];
    const texts = await Promise.all(
      sets.map((set) => run("nft", ["-j", "list", "set", ...this.#table.split(" "), set])),
    );
    return texts.flatMap(({ stdout }) =>
      [...stdout.matchAll(/"val": "([0-9a-f.:]+)"/g)].map(([, value = ""]) => value),
    );
  }

  /**
   * Counts the connections of an address from zero. The kernel keeps half-open connections of a workload that is gone for
   * minutes, and would count them against the next workload with its address.
   */
  async forgetConnections({ ipv4, ipv6 }: HostAddresses): Promise<void> {
    const counts = [["open4", ipv4] as const, ...(ipv6 === null ? [] : [["open6", ipv6] as const])];
    for (const [set, address] of counts)
      await feed("nft", ["-f", "-"], `delete element ${this.#table} ${set} { ${address} }`).catch(() => {}); // the address had no connection
  }

  async remove(): Promise<void> {
    await run("nft", ["delete", "table", ...this.#table.split(" ")]);
  }

  #elements(change: "add" | "delete", { ipv4, ipv6 }: HostAddresses, { isOpen, sources, vpc }: Way): string[] {
    const element = (set: string, value: string): string => `${change} element ${this.#table} ${set} { ${value} }`;
    if (!isOpen) return [];
    const isRouted = ipv6 !== null && vpc?.routes.some(({ bytes }) => bytes.length === 16);
    if (!sources) return [element("free", ipv4), ...(isRouted ? [element("routed6", ipv6)] : [])];
    const chain = `from_${ipv4.replaceAll(".", "_")}`;
    const family = (word: "ip" | "ip6", own: string, addresses: readonly string[]): string[] => {
      if (addresses.length === 0) return [];
      const [free, digit] = word === "ip" ? ["free", "4"] : ["free6", "6"];
      return [
        element(free, own),
        element(`leave${digit}`, change === "add" ? `${own} : goto ${chain}` : own),
        ...addresses.map((address) => element(`leaves${digit}`, `${own} . ${address}`)),
        ...(change === "add" ? [`add rule ${this.#table} ${chain} ${snat(word, addresses, sources.choice)}`] : []),
      ];
    };
    const elements = [
      element("dedicated", ipv4),
      ...family("ip", ipv4, sources.ipv4),
      ...(ipv6 === null ? [] : family("ip6", ipv6, sources.ipv6)),
    ];
    return change === "add"
      ? [`add chain ${this.#table} ${chain}`, ...elements]
      : [...elements, `flush chain ${this.#table} ${chain}`, `delete chain ${this.#table} ${chain}`];
  }

  /** Interfaces that take their addresses from a router go on doing so: without the 2 a forwarding machine stops. */
  #forwardIpv6(): void {
    if (this.#forwardsIpv6) return;
    const root = "/proc/sys/net/ipv6/conf";
    for (const name of readdirSync(root)) {
      const file = `${root}/${name}/accept_ra`;
      if (readFileSync(file, "utf8").trim() === "1") writeFileSync(file, "2");
    }
    writeFileSync(`${root}/all/forwarding`, "1");
    this.#forwardsIpv6 = true;
  }

  #whole(led: Led | null, connectionsMax: number | null): string {
    const ruled = `iifname "${this.#bridge}" ip saddr != @free`;
    const [from, to] = [`iifname "${this.#bridge}"`, `oifname "${this.#bridge}"`];
    const { ipv4: gateway, ipv6: gateway6 } = this.#block.gateway;
    // The kernel takes packets for an address of the bridge on every interface.
    const elsewhere = `iifname != { "lo", "${this.#bridge}" }`;
    const limit = (digit: 4 | 6, family: "ip" | "ip6"): string =>
      `${from} ct state new add @open${digit} { ${family} saddr ct count over ${connectionsMax} } reject with icmpx admin-prohibited`;
    const limits = connectionsMax === null ? [] : [limit(4, "ip"), limit(6, "ip6")];
    return `
table ${this.#table}
delete table ${this.#table}
table ${this.#table} {
  set free {
    type ipv4_addr
    flags interval
    ${led ? "" : `elements = { ${this.#block.network} }`}
  }
  set free6 { type ipv6_addr; }
  set routed6 { type ipv6_addr; }
  set dedicated { type ipv4_addr; }
  map leave4 { type ipv4_addr : verdict; }
  map leave6 { type ipv6_addr : verdict; }
  set open4 { type ipv4_addr; size 4096; flags dynamic; }
  set open6 { type ipv6_addr; size 4096; flags dynamic; }
  set leaves4 { type ipv4_addr . ipv4_addr; }
  set leaves6 { type ipv6_addr . ipv6_addr; }
  ${VPC_SETS}
  chain names {
    type filter hook prerouting priority raw; policy accept;
    ${from} ip daddr ${gateway} udp dport 53 notrack
  }
  chain named {
    type filter hook output priority raw; policy accept;
    ${to} ip saddr ${gateway} udp sport 53 notrack
  }
  chain lead {
    type nat hook prerouting priority dstnat; policy accept;
    ${led ? `${ruled} ip daddr != ${gateway} tcp dport 80 dnat ip to ${gateway}:${led.http}` : ""}
    ${led ? `${ruled} ip daddr != ${gateway} tcp dport 443 dnat ip to ${gateway}:${led.https}` : ""}
  }
  ${neighbourChains(limits)}
  chain routed {
    ${limits.join("\n    ")}
    meta mark set 0
    accept
  }
  chain forward {
    type filter hook forward priority filter - 10; policy accept;
    ${from} ${to} goto neighbours
    ${from} tcp dport 25 drop
    ${from} fib daddr type local drop
    ${routeRules(from, to)}
    ${from} meta nfproto ipv6 ip6 saddr != @free6 reject with icmpv6 admin-prohibited
    ${ruled} drop
    ${limits.join("\n    ")}
    ${from} ip saddr @dedicated ct state established,related ip saddr . ct reply ip daddr != @leaves4 drop
    ${from} ct state established,related ip6 saddr . ct reply ip6 daddr != @leaves6 drop
    ${to} ip daddr @dedicated ip daddr . ct reply ip daddr != @leaves4 drop
    ${to} ip6 daddr . ct reply ip6 daddr != @leaves6 drop
    ${to} ct state established,related accept
    ${to} drop
  }
  chain input {
    type filter hook input priority filter - 10; policy accept;
    ${elsewhere} ip daddr ${this.#block.network} drop
    ${gateway6 === null ? "" : `${elsewhere} ip6 daddr ${gateway6} drop`}
    ${from} ip daddr ${gateway} udp dport 53 accept
    ${limits.join("\n    ")}
    ${from} ip daddr ${gateway} tcp dport 53 accept
    ${led ? `${ruled} ip daddr ${gateway} tcp dport { ${led.http}, ${led.https} } accept` : ""}
    ${from} icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
    ${from} drop
  }
  chain output {
    type filter hook output priority filter - 10; policy accept;
    ${to} icmp type redirect drop
    ${to} icmpv6 type nd-redirect drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    oifname != "${this.#bridge}" ip saddr vmap @leave4
    oifname != "${this.#bridge}" ip6 saddr vmap @leave6
    ip saddr ${this.#block.network} oifname != "${this.#bridge}" masquerade
    ip6 saddr @routed6 oifname != "${this.#bridge}" masquerade
  }
}
`;
  }
}

/** The kernel translates a connection once, at its first packet. */
function snat(family: "ip" | "ip6", addresses: readonly string[], choice: SourceChoice): string {
  const number = choice === "turn" ? "numgen inc" : `jhash ${family} daddr`;
  const list = addresses.map((address, index) => `${index} : ${address}`).join(", ");
  return `snat ${family} to ${number} mod ${addresses.length} map { ${list} }`;
}
