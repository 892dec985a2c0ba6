/** Open sockets of the sandbox's network namespace, from /proc/net. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { familyOf } from "../process/tree.ts";

export interface Socket {
  protocol: "tcp" | "tcp6" | "udp" | "udp6";
  localAddr: string;
  localPort: number;
  remoteAddr: string;
  remotePort: number;
  state: string;
  inode: string;
}

export interface OwnedSocket extends Omit<Socket, "inode"> {
  pid: number;
  processName: string;
}

const TCP_STATES: Record<string, string> = {
  "01": "ESTABLISHED",
  "02": "SYN_SENT",
  "03": "SYN_RECV",
  "04": "FIN_WAIT1",
  "05": "FIN_WAIT2",
  "06": "TIME_WAIT",
  "07": "CLOSE",
  "08": "CLOSE_WAIT",
  "09": "LAST_ACK",
  "0A": "LISTEN",
  "0B": "CLOSING",
};

/** Ports with a TCP listener on any address. */
export function listeningPorts(): Set<number> {
  const listening = [...socketsOf("tcp"), ...socketsOf("tcp6")].filter((socket) => socket.state === "LISTEN");
  return new Set(listening.map((socket) => socket.localPort));
}

/** Inodes of the TCP listeners on this port. */
export function listenerInodes(port: number): string[] {
  return [...socketsOf("tcp"), ...socketsOf("tcp6")]
    .filter(({ state, localPort }) => state === "LISTEN" && localPort === port)
    .map(({ inode }) => inode);
}

/** Processes that hold a TCP listener on this port, including all that share one listener. */
export function listenersOn(port: number): number[] {
  const inodes = new Set(listenerInodes(port));
  if (inodes.size === 0) return [];
  const pids = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));
  return pids.map(Number).filter((pid) => socketInodesOf(pid).some((inode) => inodes.has(inode)));
}

/** Sockets held by a process or its descendants. */
export function socketsOfFamily(pid: number): OwnedSocket[] {
  const owners = new Map<string, { pid: number; processName: string }>();
  for (const stat of familyOf(pid).values()) {
    for (const inode of socketInodesOf(stat.pid)) {
      if (!owners.has(inode)) owners.set(inode, { pid: stat.pid, processName: stat.name });
    }
  }
  if (owners.size === 0) return [];
  const all = (["tcp", "tcp6", "udp", "udp6"] as const).flatMap((protocol) => socketsOf(protocol));
  return all.flatMap(({ inode, ...socket }) => {
    const owner = owners.get(inode);
    return owner ? [{ ...owner, ...socket }] : [];
  });
}

function socketInodesOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => inodeBehind(`/proc/${pid}/fd/${fd}`) ?? []);
  } catch {
    return []; // the process has ended, or belongs to another user
  }
}

function inodeBehind(link: string): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(link))?.[1];
  } catch {
    return undefined; // the descriptor was closed meanwhile
  }
}

function socketsOf(protocol: Socket["protocol"]): Socket[] {
  let text: string;
  try {
    text = readFileSync(`/proc/net/${protocol}`, "latin1");
  } catch {
    return []; // no IPv6 in this kernel
  }
  return text
    .split("\n")
    .slice(1)
    .flatMap((line) => parseLine(line, protocol) ?? []);
}

function parseLine(line: string, protocol: Socket["protocol"]): Socket | undefined {
  const [, local, remote, state, , , , , , inode] = line.trim().split(/\s+/);
  if (!local || !remote || !state || !inode) return undefined;
  const [localAddr, localPort] = parseAddress(local);
  const [remoteAddr, remotePort] = parseAddress(remote);
  const named = protocol.startsWith("tcp") ? (TCP_STATES[state] ?? state) : state === "07" ? "NONE" : "ESTABLISHED";
  return { protocol, localAddr, localPort, remoteAddr, remotePort, state: named, inode };
}

/** Addresses are printed as 32-bit words in the machine's byte order. */
function parseAddress(text: string): [string, number] {
  const [address = "", port = "0"] = text.split(":");
  const bytes = Buffer.from(address, "hex");
  for (let i = 0; i + 4 <= bytes.length; i += 4) bytes.subarray(i, i + 4).reverse();
  const number = Number.parseInt(port, 16);
  if (bytes.length === 4) return [bytes.join("."), number];
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(i * 2).toString(16));
  return [shortIpv6(groups), number];
}

function shortIpv6(groups: string[]): string {
  const text = groups.join(":");
  const zeros = [...text.matchAll(/(?:^|:)0(?::0)+(?=:|$)/g)].sort((a, b) => b[0].length - a[0].length)[0];
  if (!zeros) return text;
  const before = text.slice(0, zeros.index);
  const after = text.slice(zeros.index + zeros[0].length).replace(/^:/, "");
  return `${before}::${after}`;
}
