/**
 * VPCs in the packet filter. Every combination of a VPC and its settings that a workload of this machine has is a number;
 * packets carry that number as their mark while the filter looks at them.
 *
 *   vpc4, vpc6           the number of each workload that may begin connections
 *   members4, members6   workloads that others with the same number reach
 *   routes4, routes6     networks of the operator by number
 *   talking4, talking6   workloads that got a packet from another one lately
 *
 * Every packet is looked up, not only the first of a connection, so a change cuts connections at once.
 */
import { NON_PUBLIC_IPV4, PUBLIC_IPV6, ROUTABLE } from "../../../../lib/network/address-class.ts";
import { rangeHolds } from "../../../../lib/network/egress/network-range.ts";
import type { VpcRoute, WorkloadVpc } from "../../../../lib/network/egress/workload-vpc.ts";
import type { HostAddresses } from "./nat-addresses.ts";

/** Marks of the operator's own rules are unlikely to begin with `br` in letters. */
const MARK_BASE = 0x6272_0000;
const MARK_MASK = 0xffff_0000;
/** How long the filter remembers that a workload got a packet: longer than the time between two looks. */
const TALK_SECONDS = 5;

interface View {
  mark: number;
  vpc: WorkloadVpc;
  /** IPv4 addresses. */
  members: Set<string>;
}

type Change = "add" | "delete";

/** Commands for the filter; `undo` is for a filter that refused them. */
export interface VpcChange {
  commands: string[];
  undo(): void;
}

export class NatVpcs {
  readonly #element: (change: Change, set: string, value: string) => string;
  readonly #views = new Map<string, View>();

  constructor(table: string) {
    this.#element = (change, set, value) => `${change} element ${table} ${set} { ${value} }`;
  }

  /** Commands that bring a workload into a VPC. `begins`: the workload may begin connections. */
  enter(workload: HostAddresses, vpc: WorkloadVpc, begins: boolean): VpcChange {
    const known = this.#views.get(keyOf(vpc));
    const view = known ?? { mark: this.#freeMark(), vpc, members: new Set() };
    this.#views.set(keyOf(vpc), view);
    view.members.add(workload.ipv4);
    return {
      commands: [...(known ? [] : this.#routes("add", view)), ...this.#elements("add", workload, view, begins)],
      undo: () => {
        view.members.delete(workload.ipv4);
        if (!known) this.#views.delete(keyOf(vpc));
      },
    };
  }

  /** Commands that take a workload out of the VPC that it entered. */
  leave(workload: HostAddresses, vpc: WorkloadVpc, begins: boolean): VpcChange {
    const view = this.#views.get(keyOf(vpc));
    if (!view?.members.delete(workload.ipv4)) return { commands: [], undo: () => {} };
    const isLast = view.members.size === 0;
    if (isLast) this.#views.delete(keyOf(vpc));
    return {
      commands: [...this.#elements("delete", workload, view, begins), ...(isLast ? this.#routes("delete", view) : [])],
      undo: () => {
        view.members.add(workload.ipv4);
        this.#views.set(keyOf(vpc), view);
      },
    };
  }

  /** Whether any workload may reach another one. */
  get areInternal(): boolean {
    return [...this.#views.values()].some(({ vpc }) => vpc.internal);
  }

  #elements(change: Change, { ipv4, ipv6 }: HostAddresses, { mark, vpc }: View, begins: boolean): string[] {
    const of = (digit: 4 | 6, address: string): string[] => [
      ...(begins ? [this.#element(change, `vpc${digit}`, change === "add" ? `${address} : ${mark}` : address)] : []),
      ...(vpc.internal ? [this.#element(change, `members${digit}`, `${address} . ${mark}`)] : []),
    ];
    return [...of(4, ipv4), ...(ipv6 === null ? [] : of(6, ipv6))];
  }

  #routes(change: Change, { mark, vpc }: View): string[] {
    return outermost(vpc.routes).map(({ bytes, cidr }) =>
      this.#element(change, bytes.length === 4 ? "routes4" : "routes6", `${mark} . ${cidr}`),
    );
  }

  #freeMark(): number {
    const taken = new Set([...this.#views.values()].map(({ mark }) => mark));
    let mark = MARK_BASE + 1;
    while (taken.has(mark)) mark += 1;
    return mark;
  }
}

const keyOf = ({ id, internal, routes }: WorkloadVpc): string =>
  [id, internal, ...routes.map(({ cidr }) => cidr).sort()].join(" ");

/** Routes that no other route covers: the kernel refuses overlapping ranges in one set. */
const outermost = (routes: readonly VpcRoute[]): VpcRoute[] =>
  routes.filter(
    (route, index) =>
      !routes.some(
        (other, place) =>
          place !== index &&
          rangeHolds(other, route.bytes) &&
          (other.prefix < route.prefix || (other.prefix === route.prefix && place < index)),
      ),
  );

export const VPC_SETS = `
  map vpc4 { type ipv4_addr : mark; }
  map vpc6 { type ipv6_addr : mark; }
  set members4 { type ipv4_addr . mark; }
  set members6 { type ipv6_addr . mark; }
  set routes4 { type mark . ipv4_addr; flags interval; }
  set routes6 { type mark . ipv6_addr; flags interval; }
  set talking4 { type ipv4_addr; size 4096; flags dynamic,timeout; timeout ${TALK_SECONDS}s; }
  set talking6 { type ipv6_addr; size 4096; flags dynamic,timeout; timeout ${TALK_SECONDS}s; }`;

/** Between two workloads, `limits` first. A reply passes where the connection that it belongs to may be begun. */
export const neighbourChains = (limits: readonly string[]): string => `
  chain neighbours {
    tcp dport 25 drop
    ${limits.join("\n    ")}
    ct direction original meta mark set ip saddr map @vpc4
    ct direction original meta mark set ip6 saddr map @vpc6
    ct direction reply meta mark set ip daddr map @vpc4
    ct direction reply meta mark set ip6 daddr map @vpc6
    ct direction original ip daddr . meta mark @members4 goto talk
    ct direction original ip6 daddr . meta mark @members6 goto talk
    ct direction reply ip saddr . meta mark @members4 goto talk
    ct direction reply ip6 saddr . meta mark @members6 goto talk
    reject with icmpx admin-prohibited
  }
  chain talk {
    update @talking4 { ip daddr }
    update @talking6 { ip6 daddr }
    meta mark set 0
    accept
  }`;

/** Drops packets to and from addresses that are not public, unless the VPC has a route. */
export const routeRules = (from: string, to: string): string => `
    ${from} meta mark set ip saddr map @vpc4
    ${from} meta mark set ip6 saddr map @vpc6
    ${to} meta mark set ip daddr map @vpc4
    ${to} meta mark set ip6 daddr map @vpc6
    ${from} ip daddr { ${NON_PUBLIC_IPV4.join(", ")} } meta mark . ip daddr != @routes4 drop
    ${from} ip daddr { ${ROUTABLE.ipv4Without.join(", ")} } drop
    ${from} ip6 daddr != ${PUBLIC_IPV6.within} meta mark . ip6 daddr != @routes6 drop
    ${from} ip6 daddr != { ${ROUTABLE.ipv6Within.join(", ")} } drop
    ${from} ip6 daddr { ${ROUTABLE.ipv6Without.join(", ")} } drop
    ${to} ct state established ip saddr { ${NON_PUBLIC_IPV4.join(", ")} } meta mark . ip saddr != @routes4 drop
    ${to} ct state established ip6 saddr != ${PUBLIC_IPV6.within} meta mark . ip6 saddr != @routes6 drop
    ${from} ip6 saddr @routed6 meta mark . ip6 daddr @routes6 goto routed
    ${to} ip6 daddr @routed6 ct state established,related meta mark . ip6 saddr @routes6 goto routed
    meta mark & ${MARK_MASK} == ${MARK_BASE} meta mark set 0`;
