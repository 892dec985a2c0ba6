/**
 * A network of its own for each workload, with address translation (NAT) to the outside. Needs root, `ip` and `nft`;
 * machines without them use the egress proxy instead. All workloads are attached to one bridge whose ports cannot reach
 * each other. Packets to private addresses and to the machine itself are dropped; names are resolved by a forwarder on
 * the bridge.
 *
 * The server keeps no state about it: a workload's interface lives and dies with its network namespace.
 */
import { existsSync } from "node:fs";
import { InterfaceCounters } from "./interface-counters.ts";
import { type NameServer, type NameServerOptions, startNameServer } from "./name-server.ts";
import { AddressBlock, chooseBlock, IPV4_PREFIX, IPV6_PREFIX } from "./nat-addresses.ts";
import { NatFilter } from "./nat-filter.ts";
import { type GuardOptions, NatGuard } from "./nat-guard.ts";
import { NatPorts } from "./nat-ports.ts";
import { NatShaper } from "./nat-shaper.ts";
import { feed, run } from "./tools.ts";

export interface Nat {
  /** Content of a workload's /etc/resolv.conf. */
  resolvConf: string;
  /** Gives the network namespace of a process its interface. */
  attach(pid: number, slot: number): Promise<void>;
  /** Tells which workload has the slot, and a process of it: its outbound rules hold from now on. */
  own(slot: number, uid: string, pid: number): void;
  /** The same for a workload of an earlier server, which may have given it another hardware address. */
  adopt(pid: number, slot: number, uid: string): void;
  /** Closes the way out of a workload that is gone. The slot may have another workload already. */
  release(slot: number, uid: string): Promise<void>;
  /** Bytes that the workload sent and received so far. */
  traffic(slot: number): { sentBytes: number; receivedBytes: number };
  /** Stops the parts that run in the server; `forget` also removes the network. */
  stop(forget: boolean): Promise<void>;
}

export interface NatOptions {
  /** At most six characters; interfaces are named after it. */
  name: string;
  /** Absent: no workload has rules. */
  guarding?: GuardOptions | undefined;
  /** Workloads get an IPv6 address beside the IPv4 one. They reach IPv6 hosts only from IPv6 addresses of a gateway. */
  ipv6?: boolean;
  /** Connections that one workload may have open at once. Default CONNECTIONS_MAX. */
  connectionsMax?: number | undefined;
}

/** Null and a reason where the machine cannot; `missing` may also say what a network lacks. */
export async function openNat(options: NatOptions): Promise<{ nat: Nat | null; missing: string }> {
  const { name, guarding, ipv6, connectionsMax } = options;
  const bridge = `${name}-br`;
  let guard: NatGuard | null = null;
  let filter: NatFilter | null = null;
  let ports: NatPorts | null = null;
  try {
    if (process.getuid?.() !== 0) throw new Error("the server does not run as root");
    await run("nft", ["--version"]);
    const block = new AddressBlock(chooseBlock(bridge), ipv6 === true && existsSync("/proc/sys/net/ipv6"));
    await makeBridge(bridge, block);
    ports = new NatPorts(name, linkOf(name), block);
    await ports.open();
    filter = new NatFilter(name, bridge, block);
    const shaper = new NatShaper();
    guard = guarding ? new NatGuard(guarding, filter, shaper) : null;
    const gateway = block.gateway.ipv4;
    const led = guard && { http: await guard.listen(gateway, 80), https: await guard.listen(gateway, 443) };
    const missing = await filter.open(led, connectionsMax);
    const names = await startNameServer(gateway, guard ? judging(guard) : {});
    return { nat: natOn(name, bridge, block, { names, guard, filter, ports, shaper }), missing };
  } catch (error) {
    await guard?.stop();
    await takeDown(bridge, [ports, filter]).catch(() => {}); // parts that were not created cannot be removed
    const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    return { nat: null, missing: `No address translation (${reason}): outbound goes through the platform's proxy.` };
  }
}

interface Running {
  names: NameServer;
  guard: NatGuard | null;
  filter: NatFilter;
  ports: NatPorts;
  shaper: NatShaper;
}

const linkOf = (name: string): string => `${name}-v`;

const judging = (guard: NatGuard): NameServerOptions => ({
  mayResolve: async (asker, name) => guard.isFree(asker) || guard.mayResolve(asker, name),
  neighbourAt: (asker, name) => guard.neighbourAt(asker, name),
  tenantOf: (asker) => guard.tenantOf(asker),
});

function natOn(name: string, bridge: string, block: AddressBlock, running: Running): Nat {
  const { names, guard, filter, ports, shaper } = running;
  const { gateway } = block;
  const counters = new InterfaceCounters();
  const link = (slot: number): string => `${linkOf(name)}${slot}`;
  /** Neighbours that nobody has to ask for, and that no answer changes. */
  const pin = (address: string, mac: string, device: string): string =>
    `neighbour replace ${address} lladdr ${mac} dev ${device} nud permanent`;
  const pinned = (slot: number): string[] => {
    const { ipv4, ipv6 } = block.ofSlot(slot);
    return [ipv4, ...(ipv6 === null ? [] : [ipv6])].map((address) => pin(address, block.macOf(slot), bridge));
  };
  const inNamespace = (pid: number, commands: string[]): Promise<void> =>
    feed("nsenter", ["-t", String(pid), "-n", "ip", "-batch", "-"], commands.join("\n"));
  const own: Nat["own"] = (slot, uid, pid) => guard?.own(block.ofSlot(slot), uid, { link: link(slot), pid });
  return {
    resolvConf: `nameserver ${gateway.ipv4}\noptions timeout:2 attempts:2\n`,
    own,
    adopt(pid, slot, uid) {
      inNamespace(pid, [`link set eth0 address ${block.macOf(slot)}`])
        .then(() => feed("ip", ["-batch", "-"], pinned(slot).join("\n")))
        .catch(() => {}) // the workload has no interface; its rules are read all the same
        .then(() => own(slot, uid, pid));
    },
    release: async (slot, uid) => guard?.release(block.ofSlot(slot), uid),
    async attach(pid, slot) {
      const own = block.ofSlot(slot);
      await guard?.disown(own);
      const outside = [
        `link add ${link(slot)} type veth peer name eth0 address ${block.macOf(slot)} netns ${pid}`,
        `link set ${link(slot)} master ${bridge}`,
        `link set ${link(slot)} type bridge_slave isolated on`,
        // A port of the bridge needs no address of its own; the kernel would list one for each workload.
        `link set ${link(slot)} addrgenmode none`,
        `link set ${link(slot)} up`,
        ...pinned(slot),
      ];
      const inside = [
        // Other workloads are not on the link: packets for them go to the gateway, whose filter judges them.
        `address add ${own.ipv4}/32 dev eth0`,
        ...(own.ipv6 === null ? [] : [`address add ${own.ipv6}/128 dev eth0 nodad`]),
        "link set eth0 up",
        ...[gateway.ipv4, ...(own.ipv6 === null || gateway.ipv6 === null ? [] : [gateway.ipv6])].flatMap((address) => [
          pin(address, block.mac, "eth0"),
          `route add ${address} dev eth0`,
          `route add default via ${address}`,
        ]),
      ];
      // The kernel may not have removed the interface of the slot's previous workload yet.
      await run("ip", ["link", "delete", link(slot)]).catch(() => {});
      await feed("ip", ["-batch", "-"], outside.join("\n"));
      await inNamespace(pid, inside);
      shaper.attached(own);
    },
    traffic(slot) {
      const { sentBytes, receivedBytes } = counters.of(link(slot));
      // Bytes that the workload sends are received by the host's end.
      return { sentBytes: receivedBytes, receivedBytes: sentBytes };
    },
    async stop(forget) {
      await names.stop();
      await guard?.stop();
      if (forget) await takeDown(bridge, [ports, filter]);
    },
  };
}

async function takeDown(bridge: string, tables: readonly (NatPorts | NatFilter | null)[]): Promise<void> {
  await run("ip", ["link", "delete", bridge]);
  for (const table of tables) await table?.remove();
}

async function makeBridge(bridge: string, block: AddressBlock): Promise<void> {
  const { gateway } = block;
  const there = await run("ip", ["link", "show", "dev", bridge]).catch(() => null);
  const commands = [
    ...(there
      ? []
      : [
          `link add name ${bridge} address ${block.mac} type bridge`,
          `address add ${gateway.ipv4}/${IPV4_PREFIX} dev ${bridge}`,
        ]),
    ...(gateway.ipv6 === null ? [] : [`address replace ${gateway.ipv6}/${IPV6_PREFIX} dev ${bridge} nodad`]),
    `link set ${bridge} up`,
  ];
  await feed("ip", ["-batch", "-"], commands.join("\n"));
}
