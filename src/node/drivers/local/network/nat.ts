/**
 * A network of its own for each workload, with address translation (NAT) to the outside. Needs root, `ip` and `nft`;
 * machines without them use the egress proxy instead. All workloads are attached to one bridge whose ports cannot reach
 * each other. Packets to private addresses and to the machine itself are dropped; names are resolved by a forwarder on
 * the bridge.
 *
 * The server keeps no state about it: a workload's interface lives and dies with its network namespace.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { promisify } from "node:util";
import { NON_PUBLIC_IPV4 } from "../../../../lib/network/address-class.ts";
import { type NameServer, type NameServerOptions, startNameServer } from "./name-server.ts";
import { type ChangeFree, type GuardOptions, NatGuard } from "./nat-guard.ts";

const run = promisify(execFile);

export interface Nat {
  /** Content of a workload's /etc/resolv.conf. */
  resolvConf: string;
  /** Gives the network namespace of a process its interface. */
  attach(pid: number, slot: number): Promise<void>;
  /** Tells which workload has the slot: its outbound rules hold from now on. */
  own(slot: number, uid: string): void;
  /** Bytes that the workload sent and received so far. */
  traffic(slot: number): { sentBytes: number; receivedBytes: number };
  /** Stops the parts that run in the server; `forget` also removes the network. */
  stop(forget: boolean): Promise<void>;
}

/**
 * 198.18.0.0/15 is reserved for benchmarks of network devices, so no real network uses it. Each platform takes a free
 * block of 4,096 addresses, since several may run on one machine.
 */
const PREFIX = 20;
const PIECES = 32;
const PIECE_ADDRESSES = 4096;
const FIRST = (198 << 24) | (18 << 16);

const TOOL_ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin", LC_ALL: "C" };

/** Null and a reason where the machine cannot. `name` has at most six characters; interfaces are named after it. */
export async function openNat(name: string, guarding?: GuardOptions): Promise<{ nat: Nat | null; missing: string }> {
  const bridge = `${name}-br`;
  let guard: NatGuard | null = null;
  try {
    if (process.getuid?.() !== 0) throw new Error("the server does not run as root");
    await run("nft", ["--version"], { env: TOOL_ENV });
    const piece = choosePiece(bridge);
    await makeBridge(bridge, piece);
    const changeFree: ChangeFree = (change, address) =>
      feed("nft", ["-f", "-"], `${change} element inet ${tableOf(name)} free { ${address} }`);
    guard = guarding ? new NatGuard(guarding, changeFree) : null;
    const gateway = addressOf(piece, 1);
    const led = guard && { http: await guard.listen(gateway, 80), https: await guard.listen(gateway, 443) };
    await feed("nft", ["-f", "-"], rules(name, bridge, piece, led));
    const names = await startNameServer(gateway, guard ? judging(guard) : {});
    writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
    return { nat: natOn(name, bridge, piece, { names, guard }), missing: "" };
  } catch (error) {
    await guard?.stop();
    await takeDown(name, bridge).catch(() => {}); // parts that were not created cannot be removed
    const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    return { nat: null, missing: `No address translation (${reason}): outbound goes through the platform's proxy.` };
  }
}

interface Running {
  names: NameServer;
  guard: NatGuard | null;
}

const judging = (guard: NatGuard): NameServerOptions => ({
  mayResolve: async (asker, name) => guard.isFree(asker) || guard.mayResolve(asker, name),
  mayResolveAll: (asker) => guard.isFree(asker),
});

function natOn(name: string, bridge: string, piece: number, { names, guard }: Running): Nat {
  const gateway = addressOf(piece, 1);
  const link = (slot: number): string => `${name}-v${slot}`;
  return {
    resolvConf: `nameserver ${gateway}\noptions timeout:2 attempts:2\n`,
    own: (slot, uid) => guard?.own(addressOf(piece, slot + 2), uid),
    async attach(pid, slot) {
      await guard?.disown(addressOf(piece, slot + 2));
      const outside = [
        `link add ${link(slot)} type veth peer name eth0 netns ${pid}`,
        `link set ${link(slot)} master ${bridge}`,
        `link set ${link(slot)} type bridge_slave isolated on`,
        `link set ${link(slot)} up`,
      ];
      const inside = [
        `address add ${addressOf(piece, slot + 2)}/${PREFIX} dev eth0`,
        "link set eth0 up",
        `route add default via ${gateway}`,
      ];
      // The kernel may not have removed the interface of the slot's previous workload yet.
      await run("ip", ["link", "delete", link(slot)], { env: TOOL_ENV }).catch(() => {});
      await feed("ip", ["-batch", "-"], outside.join("\n"));
      await feed("nsenter", ["-t", String(pid), "-n", "ip", "-batch", "-"], inside.join("\n"));
    },
    traffic(slot) {
      const table = readFileSync("/proc/net/dev", "utf8");
      const line = table.split("\n").find((each) => each.trimStart().startsWith(`${link(slot)}:`)) ?? "";
      const [, received = 0, , , , , , , , sent = 0] = line.trim().split(/[\s:]+/);
      // Bytes that the workload sends are received by the host's end.
      return { sentBytes: Number(received), receivedBytes: Number(sent) };
    },
    async stop(forget) {
      await names.stop();
      await guard?.stop();
      if (forget) await takeDown(name, bridge);
    },
  };
}

async function takeDown(name: string, bridge: string): Promise<void> {
  await run("ip", ["link", "delete", bridge], { env: TOOL_ENV });
  await run("nft", ["delete", "table", "inet", tableOf(name)], { env: TOOL_ENV });
}

/** Address of a host in a block: 0 is the network itself, 1 the gateway; workloads follow. */
function addressOf(piece: number, host: number): string {
  const address = FIRST + piece * PIECE_ADDRESSES + host;
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
}

/** The block of the existing bridge, otherwise the first that no interface uses. */
function choosePiece(bridge: string): number {
  const interfaces = networkInterfaces();
  const pieceOf = (address: string): number =>
    Array.from({ length: PIECES }, (_, piece) => piece).find((piece) => addressOf(piece, 1) === address) ?? -1;
  const own = interfaces[bridge]?.map(({ address }) => pieceOf(address)).find((piece) => piece >= 0);
  if (own !== undefined) return own;
  const taken = new Set(
    Object.values(interfaces).flatMap((each) => each?.map(({ address }) => pieceOf(address)) ?? []),
  );
  for (let piece = 0; piece < PIECES; piece++) if (!taken.has(piece)) return piece;
  throw new Error("all of 198.18.0.0/15 is in use");
}

const tableOf = (name: string): string => `workloads_${name.replace(/\W/g, "_")}`;

async function makeBridge(bridge: string, piece: number): Promise<void> {
  const there = await run("ip", ["link", "show", "dev", bridge], { env: TOOL_ENV }).catch(() => null);
  if (there) return;
  const commands = [
    `link add name ${bridge} type bridge`,
    `address add ${addressOf(piece, 1)}/${PREFIX} dev ${bridge}`,
    `link set ${bridge} up`,
  ];
  await feed("ip", ["-batch", "-"], commands.join("\n"));
}

/** Ports of the gateway that connections of workloads with rules are led to. */
interface Led {
  http: number;
  https: number;
}

/** Replaces the whole table atomically. IPv6 is not forwarded: workloads have no IPv6 address. */
function rules(name: string, bridge: string, piece: number, led: Led | null): string {
  const whole = `${addressOf(piece, 0)}/${PREFIX}`;
  const ruled = `iifname "${bridge}" ip saddr != @free`;
  const gateway = addressOf(piece, 1);
  const table = `inet ${tableOf(name)}`;
  return `
table ${table}
delete table ${table}
table ${table} {
  set free {
    type ipv4_addr
    flags interval
    ${led ? "" : `elements = { ${whole} }`}
  }
  chain lead {
    type nat hook prerouting priority dstnat; policy accept;
    ${led ? `${ruled} ip daddr != ${gateway} tcp dport 80 dnat ip to ${gateway}:${led.http}` : ""}
    ${led ? `${ruled} ip daddr != ${gateway} tcp dport 443 dnat ip to ${gateway}:${led.https}` : ""}
  }
  chain forward {
    type filter hook forward priority filter - 10; policy accept;
    iifname "${bridge}" meta nfproto ipv6 drop
    iifname "${bridge}" ip daddr { ${NON_PUBLIC_IPV4.join(", ")} } drop
    iifname "${bridge}" tcp dport 25 drop
    iifname "${bridge}" fib daddr type local drop
    ${ruled} drop
    oifname "${bridge}" ct state established,related accept
    oifname "${bridge}" drop
  }
  chain input {
    type filter hook input priority filter - 10; policy accept;
    iifname "${bridge}" ip daddr ${addressOf(piece, 1)} meta l4proto { tcp, udp } th dport 53 accept
    ${led ? `${ruled} ip daddr ${gateway} tcp dport { ${led.http}, ${led.https} } accept` : ""}
    iifname "${bridge}" drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${addressOf(piece, 0)}/${PREFIX} oifname != "${bridge}" masquerade
  }
}
`;
}

/** Runs a tool with the text on its standard input. */
async function feed(program: string, args: string[], text: string): Promise<void> {
  const child: ChildProcess = spawn(program, args, { env: TOOL_ENV, stdio: ["pipe", "ignore", "pipe"] });
  let complaint = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-1000);
  });
  child.stdin?.on("error", () => {}); // the tool ended early; its exit code says why
  child.stdin?.end(`${text}\n`);
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${program}: ${complaint.trim() || `exit ${code}`}`);
}
