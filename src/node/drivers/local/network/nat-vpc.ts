/**
 * VPCs in the packet filter. Every VPC with workloads that reach each other is a number, and so is every list of routes
 * that a workload has; packets carry the number as their mark while the filter looks at them. The two are apart, so that
 * a change of routes, which comes to one workload after another, does not part the workloads of a VPC meanwhile.
 *
 *   group4, group6       the number of the VPC of each workload that may begin connections to others
 *   members4, members6   workloads that others of the same VPC reach
 *   vpc4, vpc6           the number of the routes of each workload that may begin connections
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

type Change = "add" | "delete";

/** Commands for the filter; `undo` is for a filter that refused them. */
export interface VpcChange {
  commands: string[];
  undo(): void;
}

export class NatVpcs {
  readonly #element: (change: Change, set: string, value: string) => string;
  /** By id of the VPC. */
  readonly #groups = new Numbers();
  /** By the routes themselves. */
  readonly #routes = new Numbers();

  constructor(table: string) {
    this.#element = (change, set, value) => `${change} element ${table} ${set} { ${value} }`;
  }

  /** Commands that bring a workload into a VPC. `begins`: the workload may begin connections. */
  enter(workload: HostAddresses, vpc: WorkloadVpc, begins: boolean): VpcChange {
    const group = vpc.internal ? this.#groups.take(vpc.id, workload.ipv4) : null;
    const routes = vpc.routes.length > 0 ? this.#routes.take(routesKey(vpc), workload.ipv4) : null;
    return {
      commands: [
        ...(routes?.isOnly ? this.#routeElements("add", vpc, routes.mark) : []),
        ...this.#elements("add", workload, { group, routes, begins }),
      ],
      undo: () => {
        group?.undo();
        routes?.undo();
      },
    };
  }

  /** Commands that take a workload out of the VPC that it entered. */
  leave(workload: HostAddresses, vpc: WorkloadVpc, begins: boolean): VpcChange {
    const group = this.#groups.leave(vpc.id, workload.ipv4);
    const routes = this.#routes.leave(routesKey(vpc), workload.ipv4);
    return {
      commands: [
        ...this.#elements("delete", workload, { group, routes, begins }),
        ...(routes?.isOnly ? this.#routeElements("delete", vpc, routes.mark) : []),
      ],
      undo: () => {
        group?.undo();
        routes?.undo();
      },
    };
  }

  /** Whether any workload may reach another one. */
  get areInternal(): boolean {
    return this.#groups.size > 0;
  }

  #elements(
    change: Change,
    { ipv4, ipv6 }: HostAddresses,
    { group, routes, begins }: { group: Numbered | null; routes: Numbered | null; begins: boolean },
  ): string[] {
    const mapped = (map: string, address: string, at: Numbered | null): string[] =>
      at && begins ? [this.#element(change, map, change === "add" ? `${address} : ${at.mark}` : address)] : [];
    const of = (digit: 4 | 6, address: string): string[] => [
      ...mapped(`group${digit}`, address, group),
      ...mapped(`vpc${digit}`, address, routes),
      ...(group ? [this.#element(change, `members${digit}`, `${address} . ${group.mark}`)] : []),
    ];
    return [...of(4, ipv4), ...(ipv6 === null ? [] : of(6, ipv6))];
  }

  #routeElements(change: Change, vpc: WorkloadVpc, mark: number): string[] {
    return outermost(vpc.routes).map(({ bytes, cidr }) =>
      this.#element(change, bytes.length === 4 ? "routes4" : "routes6", `${mark} . ${cidr}`),
    );
  }
}

interface Numbered {
  mark: number;
  /** Nobody else has the number. */
  isOnly: boolean;
  undo(): void;
}

/** Gives every key a number for as long as somebody uses the key. */
class Numbers {
  readonly #used = new Map<string, { mark: number; users: Set<string> }>();

  get size(): number {
    return this.#used.size;
  }

  take(key: string, user: string): Numbered {
    const used = this.#used.get(key) ?? { mark: this.#free(), users: new Set() };
    this.#used.set(key, used);
    used.users.add(user);
    return { mark: used.mark, isOnly: used.users.size === 1, undo: () => void this.#remove(key, user) };
  }

  /** Null for somebody who does not use the key. */
  leave(key: string, user: string): Numbered | null {
    const used = this.#used.get(key);
    if (!used || !this.#remove(key, user)) return null;
    const undo = (): void => {
      used.users.add(user);
      this.#used.set(key, used);
    };
    return { mark: used.mark, isOnly: used.users.size === 0, undo };
  }

  #remove(key: string, user: string): boolean {
    const users = this.#used.get(key)?.users;
    const isRemoved = users?.delete(user) === true;
    if (users?.size === 0) this.#used.delete(key);
    return isRemoved;
  }

  #free(): number {
    const taken = new Set([...this.#used.values()].map(({ mark }) => mark));
    let mark = MARK_BASE + 1;
    while (taken.has(mark)) mark += 1;
    return mark;
  }
}

const routesKey = ({ routes }: WorkloadVpc): string =>
  routes
    .map(({ cidr }) => cidr)
    .sort()
    .join(" ");

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
  map group4 { type ipv4_addr : mark; }
  map group6 { type ipv6_addr : mark; }
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
    ct direction original meta mark set ip saddr map @group4
    ct direction original meta mark set ip6 saddr map @group6
    ct direction reply meta mark set ip daddr map @group4
    ct direction reply meta mark set ip6 daddr map @group6
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
