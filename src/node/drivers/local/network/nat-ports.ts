/**
 * Pins every port of the bridge to the addresses of its slot: a workload that sends from another workload's hardware, IPv4
 * or IPv6 address, or claims one by ARP, is not heard, and no frame for one workload is shown to another one. All slots
 * are pinned at once, before there is a workload, because what a slot may send never changes.
 */
import type { AddressBlock } from "./nat-addresses.ts";
import { feed, run } from "./tools.ts";

export class NatPorts {
  readonly #table: string;
  readonly #link: string;
  readonly #block: AddressBlock;

  /** `link`: the beginning of the names of ports; the number of the slot follows. */
  constructor(name: string, link: string, block: AddressBlock) {
    this.#table = `bridge workloads_${name.replace(/\W/g, "_")}`;
    this.#link = link;
    this.#block = block;
  }

  async open(): Promise<void> {
    await feed("nft", ["-f", "-"], this.#whole());
  }

  async remove(): Promise<void> {
    await run("nft", ["delete", "table", ...this.#table.split(" ")]);
  }

  #whole(): string {
    const { slots } = this.#block;
    const ports = (family: "ipv4" | "ipv6"): string => {
      const elements = Array.from({ length: slots }, (_, slot) => slot).flatMap((slot) => {
        const address = this.#block.ofSlot(slot)[family];
        return address === null ? [] : [`"${this.#link}${slot}" . ${this.#block.macOf(slot)} . ${address}`];
      });
      return elements.length === 0 ? "" : `elements = { ${elements.join(", ")} }`;
    };
    return `
table ${this.#table}
delete table ${this.#table}
table ${this.#table} {
  set ports4 { type ifname . ether_addr . ipv4_addr; ${ports("ipv4")} }
  set ports6 { type ifname . ether_addr . ipv6_addr; ${ports("ipv6")} }
  chain enter {
    type filter hook prerouting priority dstnat; policy accept;
    iifname != "${this.#link}*" accept
    ether type arp iifname . ether saddr . arp saddr ip @ports4 iifname . arp saddr ether . arp saddr ip @ports4 accept
    ether type ip iifname . ether saddr . ip saddr @ports4 accept
    ether type ip6 iifname . ether saddr . ip6 saddr @ports6 accept
    drop
  }
  chain leave {
    type filter hook postrouting priority srcnat; policy accept;
    oifname != "${this.#link}*" accept
    ether type arp accept
    ether type ip oifname . ether daddr . ip daddr @ports4 accept
    ether type ip6 oifname . ether daddr . ip6 daddr @ports6 accept
    drop
  }
}
`;
  }
}
