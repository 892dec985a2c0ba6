/**
 * For a child in network and mount namespaces of its own (`unshare -n -m`), which plays the machine: a second namespace
 * is the internet, and every name leads there.
 */
import { execFileSync, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { answerQuestion } from "../dns-server.ts";

export const WORLD = "203.0.113.2";
/** The machine's own address, and two more of it for egress gateways. */
export const MACHINE = "203.0.113.1";
export const POOL = ["203.0.113.11", "203.0.113.12"];

export interface World extends AsyncDisposable {
  /** The hosts that were asked for so far, by their Host header. */
  seen(): Promise<string[]>;
}

export interface WorldOptions {
  /** An empty folder, or one that holds the certificate and the key of the world's TLS server. */
  folder: string;
  /** The world tells clients whether their requests have this key. */
  secret?: string;
}

export async function startWorld({ folder, secret = "" }: WorldOptions): Promise<World> {
  const program = join(import.meta.dirname, "world-child.ts");
  const child = spawn("unshare", ["-n", process.execPath, program, folder, secret], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  process.once("exit", () => child.kill());
  await once(child.stdout, "data");
  connect(Number(child.pid));
  const names = await startNames(folder);
  return {
    seen: async () => (await fetch(`http://${WORLD}:9000/`)).json() as Promise<string[]>,
    async [Symbol.asyncDispose]() {
      names.close();
      child.kill();
      await once(child, "close");
    },
  };
}

/** A cable between the machine and the world. */
function connect(pid: number): void {
  ip([
    "link set lo up",
    `link add world0 type veth peer name host0 netns ${pid}`,
    `address add ${MACHINE}/24 dev world0`,
    ...POOL.map((address) => `address add ${address}/32 dev world0`),
    "link set world0 up",
  ]);
  ip(["link set lo up", `address add ${WORLD}/24 dev host0`, "link set host0 up"], pid);
  ip([`route add default via ${WORLD}`]);
}

export function ip(commands: readonly string[], pid?: number): void {
  const enter = pid === undefined ? [] : ["nsenter", "-t", String(pid), "-n"];
  const [program = "ip", ...args] = [...enter, "ip", "-batch", "-"];
  execFileSync(program, args, { input: `${commands.join("\n")}\n` });
}

/** The machine's name server. */
async function startNames(folder: string): Promise<ReturnType<typeof createSocket>> {
  const names = createSocket("udp4");
  names.on("message", (query, from) => {
    const answer = answerQuestion(query, (_, type) => (type === "A" ? [WORLD] : []));
    names.send(answer, from.port, from.address);
  });
  names.bind(53, "127.0.0.1");
  await once(names, "listening");
  const files = { "resolv.conf": "nameserver 127.0.0.1\n", "nsswitch.conf": "hosts: files dns\n" };
  for (const [name, text] of Object.entries(files)) {
    if (!existsSync(join("/etc", name))) continue;
    writeFileSync(join(folder, name), text);
    execFileSync("mount", ["--bind", join(folder, name), join("/etc", name)]);
  }
  return names;
}
