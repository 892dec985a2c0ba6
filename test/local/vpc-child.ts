/**
 * Run by vpc.test.ts in a network namespace of its own: this is the machine, and a second namespace is the operator's
 * network. `one`, `two` and `ruled` are in one VPC, `stranger` is in a VPC of another workspace that has the same name.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { compileNetwork } from "../../src/kinds/workload/network.ts";
import { parseRoute } from "../../src/lib/network/egress/operator-networks.ts";
import type { WorkloadRules } from "../../src/lib/network/egress/workload-rules.ts";
import { internalNameOf, type WorkloadVpc } from "../../src/lib/network/egress/workload-vpc.ts";
import type { Neighbours } from "../../src/node/egress/neighbours.ts";
import { refusal } from "../../src/node/egress/refusal.ts";
import type { Observed, WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine } from "./machine.ts";
import { run } from "./run.ts";
import { until } from "./until.ts";

const ip = (commands: string[], pid?: number): void => {
  const enter = pid === undefined ? [] : ["nsenter", "-t", String(pid), "-n"];
  const [program = "ip", ...args] = [...enter, "ip", "-batch", "-"];
  execFileSync(program, args, { input: `${commands.join("\n")}\n` });
};

// Tells who connected, keeps a connection open on port 7001, counts datagrams, and is a web server.
const SERVERS = `const net = require("net"), who = process.argv[1]; let got = 0;
const any = (port, serve) => net.createServer(serve).on("error", () => {}).listen(port, process.argv[2] || "::");
any(7000, s => { s.on("error", () => {}); s.end(who + " saw " + (s.remoteAddress || "").replace("::ffff:", "")) });
any(7001, s => { s.on("error", () => {}); s.write("hello "); setInterval(() => s.write("."), 100) });
any(7002, s => { s.on("error", () => {}); s.end(String(got)) });
require("http").createServer((q, s) => s.end("web of " + who)).on("error", () => {}).listen(80, process.argv[2] || "::");
const u = require("dgram").createSocket({ type: process.argv[2] ? "udp4" : "udp6" }); u.on("message", (_, from) => { got++; u.send(who + " saw " + from.address, from.port, from.address) });
u.bind(7000, () => console.log("up"))`;

const hasIpv6 = existsSync("/proc/sys/net/ipv6");
const EVERY_IPV4 = "0.0.0.0";
const corp = spawn("unshare", ["-n", process.execPath, "-e", SERVERS, "corp", ...(hasIpv6 ? [] : [EVERY_IPV4])], {
  stdio: ["ignore", "pipe", "inherit"],
});
process.once("exit", () => corp.kill());
await once(corp.stdout, "data");
const pid = Number(corp.pid);
const THERE = ["10.20.0.1", "10.30.0.1", "169.254.169.254"];
ip([
  "link set lo up",
  `link add world0 type veth peer name host0 netns ${pid}`,
  "address add 203.0.113.1/24 dev world0",
]);
ip(["address add 10.20.0.9/32 dev world0", "link set world0 up"]);
ip(THERE.map((address) => `route add ${address}/32 via 203.0.113.2`));
ip(
  ["203.0.113.2/24", ...THERE.map((each) => `${each}/32`)].map((each) => `address add ${each} dev host0`),
  pid,
);
ip(["link set host0 up", "link set lo up"], pid);
const THERE_IPV6 = ["fd20:1::1", "fd30:1::1"];
if (hasIpv6) {
  ip(["2606:4700:113::1/64", "fd20:1::9/128"].map((each) => `address add ${each} dev world0 nodad`));
  ip(
    ["2606:4700:113::2/64", ...THERE_IPV6.map((each) => `${each}/128`)].map(
      (each) => `address add ${each} dev host0 nodad`,
    ),
    pid,
  );
  ip(THERE_IPV6.map((each) => `route add ${each}/128 via 2606:4700:113::2`));
  ip(["route add fd20:1::9/128 via 2606:4700:113::1"], pid);
}
// The machine itself listens too: no route leads to it.
const host = spawn(process.execPath, ["-e", SERVERS, "host", ...(hasIpv6 ? [] : [EVERY_IPV4])], {
  stdio: ["ignore", "pipe", "inherit"],
});
process.once("exit", () => host.kill());
await once(host.stdout, "data");

const machine = new LocalMachine();
const OPEN = compileNetwork({});
const RULED = compileNetwork({ proxy: { allowedDomains: ["*.lab.internal"] } });
const vpc = (id: string, internal: boolean, cidrs: string[] = []): WorkloadVpc => ({
  ...{ id, name: "lab", internal, routes: cidrs.map((cidr) => parseRoute(cidr, "")) },
});
const rules = new Map<string, WorkloadRules>();
const listeners = new Set<(uid: string) => void>();
const set = (uid: string, mine: WorkloadVpc, base = OPEN): void => {
  rules.set(uid, { ...base, vpc: mine });
  for (const listener of listeners) listener(uid);
};
const of = async (uid: string): Promise<WorkloadRules> => rules.get(uid) ?? OPEN;
const found = new Map<string, Observed>();
const addresses = new Map<string, string>();
const touched = new Set<string>();
/** Names are uids here; kinds/vpc/neighbours.ts finds them in the records. */
const neighbours: Neighbours = {
  async find(uid, host) {
    const mine = (await of(uid)).vpc;
    const asked = mine && internalNameOf(host, mine.name);
    if (!mine || !asked) return null;
    const other = found.get(asked.name);
    const isMember = other !== undefined && (await of(asked.name)).vpc?.id === mine.id;
    if (!mine.internal || !isMember) return refusal(502, "name_not_resolved", "nobody");
    return { uid: other.uid, owner: other.uid, endpoint: other.endpoint, use: () => () => {} };
  },
  async touch(uid) {
    touched.add(uid);
  },
};
const open = () =>
  machine.open({
    ipv6: hasIpv6,
    egress: {
      rules: {
        of,
        onChange(listener) {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      },
      neighbours,
    },
  });
let driver = await open();
try {
  assert.equal((await driver.probe()).outbound, "nat", (await driver.probe()).missing.join(" "));
  await look();
} finally {
  await driver.stop("kill");
  corp.kill();
  host.kill();
}
assert.doesNotMatch(ruleset(), /workloads_/, "nothing stays");
machine.dispose();

async function look(): Promise<void> {
  set("one", vpc("mine", true));
  set("two", vpc("mine", true));
  set("ruled", vpc("mine", true), RULED);
  set("stranger", vpc("theirs", true));
  const [one, two, ruled, stranger] = await Promise.all([box("one"), box("two"), box("ruled"), box("stranger")]);
  await lookAtNames({ one, two, ruled, stranger });
  // Before the spoofing of IPv4, which takes the interface of `stranger` down and with it its IPv6 addresses.
  if (hasIpv6) await lookAtIpv6Spoofing({ one, two, stranger });
  if (hasIpv6) await lookAtIpv6Routes(one, stranger);
  await lookAtSpoofing({ one, two, stranger });
  await lookAtRoutes(one, two, stranger);
  await lookAtProxyRoutes(ruled);
  await lookAtChanges(one, two);
  await lookAtRestart(one);
}

async function lookAtNames({ one, two, ruled, stranger }: Record<"one" | "two" | "ruled" | "stranger", Observed>) {
  await until(async () => (await answer(one, "two.lab.internal")) !== "");
  assert.match(await answer(one, "two.lab.internal"), /^two saw/, "by name");
  assert.match(await answer(two, "one.lab.internal"), /^one saw/, "in the other direction");
  assert.match(await answer(one, "ruled.lab.internal"), /^ruled saw/, "rules are about what leaves");
  assert.equal(await answer(one, addressOf(two)), `two saw ${addressOf(one)}`, "over IPv4");
  assert.match(await resolve(one, "two.lab.internal", 4), /^198\.18\./);
  if (hasIpv6) {
    const six = await resolve(one, "two.lab.internal", 6);
    assert.match(six, /^fd62:6572:7468:/);
    assert.match(await answer(one, six), /^two saw fd62:/, "over IPv6");
  }
  // Packets keep a workload awake.
  await until(async () => (await answer(one, addressOf(two))) !== "" && touched.has("two"));
  assert.ok(!touched.has("stranger"));
  assert.equal(await resolve(one, "nobody.lab.internal", 4), "ENOTFOUND");
  assert.equal(await resolve(one, "stranger.lab.internal", 4), "ENOTFOUND", "a name of another workspace");
  assert.equal(await resolve(stranger, "two.lab.internal", 4), "ENOTFOUND", "the same name in another VPC");
  assert.equal(await reach(stranger, addressOf(two)), "", "another VPC, by address");
  assert.equal(await reach(one, addressOf(stranger)), "", "the same in the other direction");
  assert.equal(await reach(ruled, addressOf(two)), "", "a workload with rules has the proxy only");
  const web = `exec 3<>/dev/tcp/two.lab.internal/80; printf "GET / HTTP/1.1\\r\\nHost: two.lab.internal\\r\\nConnection: close\\r\\n\\r\\n" >&3; cat <&3`;
  assert.match((await run(ruled, `timeout 50 bash -c '${web}'`)).output, /200 OK.*web of two/s, "through the proxy");
  for (const name of ["127.0.0.1", "198.18.0.1", "203.0.113.1", "10.20.0.9"])
    assert.doesNotMatch(await reach(one, name), /host saw/, `the machine at ${name}`);
}

/** Inside a workload nobody has the rights for this; here the machine's root does it, in the workload's place. */
async function lookAtSpoofing({ one, two, stranger }: Record<"one" | "two" | "stranger", Observed>): Promise<void> {
  const count = async (): Promise<string> => (await run(two, "cat < /dev/tcp/127.0.0.1/7002")).output;
  const shout = (from: Observed, source: string): void => {
    const script = `const u = require("dgram").createSocket("udp4"); u.bind(0, "${source}", () => u.send("x", 7000, "${addressOf(two)}", () => u.close()))`;
    execFileSync("nsenter", ["-t", String(from.pid), "-n", process.execPath, "-e", script]);
  };
  await until(async () => {
    shout(one, addressOf(one));
    return (await count()) !== "0";
  });
  const before = await count();
  const [mine, theirs] = [Number(stranger.pid), addressOf(two)];
  ip([`address add ${addressOf(one)}/32 dev lo`], mine);
  shout(stranger, addressOf(one));
  ip([`address delete ${addressOf(one)}/32 dev lo`], mine);
  // Claims of the address and of the hardware address of `two`.
  const mac = macOf(stranger);
  execFileSync("nsenter", ["-t", String(mine), "-n", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/eth0/arp_notify"]);
  ip([`address add ${theirs}/32 dev eth0`, "link set eth0 down", "link set eth0 up"], mine);
  assert.equal(await answer(one, theirs), `two saw ${addressOf(one)}`, "a claimed address");
  ip([`address delete ${theirs}/32 dev eth0`, `link set eth0 address ${macOf(two)}`], mine);
  const gateway = "198.18.0.1";
  ip([`route replace ${gateway} dev eth0`, `route replace default via ${gateway}`], mine);
  shout(stranger, addressOf(stranger));
  assert.equal(await answer(one, theirs), `two saw ${addressOf(one)}`, "a claimed hardware address");
  ip([`link set eth0 address ${mac}`], mine);
  assert.equal(await count(), before, "nothing came from a spoofed address");
}

/** Neighbour discovery: claims of another workload's address, and of the gateway's, lead nobody astray. */
async function lookAtIpv6Spoofing({ one, two, stranger }: Record<"one" | "two" | "stranger", Observed>): Promise<void> {
  const [theirs, gateway] = [await resolve(one, "two.lab.internal", 6), "fd62:6572:7468:0::1"];
  const mine = Number(stranger.pid);
  const reaches = async (why: string): Promise<void> => assert.match(await answer(one, theirs), /^two saw fd62:/, why);
  const neighbours = (): string => execFileSync("ip", ["-6", "neighbour"], { encoding: "utf8" });
  await reaches("before");
  const before = macOf(two);
  for (const claimed of [theirs, gateway]) {
    ip([`address add ${claimed}/128 dev eth0 nodad`], mine);
    await advertise(mine, claimed);
    await reaches(`a claim of ${claimed}`);
    ip([`address delete ${claimed}/128 dev eth0`], mine);
  }
  assert.match(neighbours(), new RegExp(`^${theirs} .* ${before} PERMANENT`, "m"), "what the machine knows of `two`");
  const inside = execFileSync("nsenter", ["-t", String(one.pid), "-n", "ip", "-6", "neighbour"], { encoding: "utf8" });
  assert.doesNotMatch(
    inside,
    new RegExp(macOf(stranger)),
    "no neighbour of `one` has the hardware address of the liar",
  );
}

/** Sends an unsolicited neighbour advertisement that overrides what others know, to everybody on the link. */
async function advertise(pid: number, claimed: string): Promise<void> {
  const script = `import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
mac = bytes.fromhex("${macAt(pid).replaceAll(":", "")}")
packet = struct.pack("!BBHI", 136, 0, 0, 0xA0000000) + socket.inet_pton(socket.AF_INET6, "${claimed}") + b"\\x02\\x01" + mac
for to in ("ff02::1", "fd62:6572:7468:0::1"):
    try: s.sendto(packet, (to, 0, 0, socket.if_nametoindex("eth0")))
    except OSError: pass`;
  const sent = spawnSync("nsenter", ["-t", String(pid), "-n", "python3", "-c", script], { encoding: "utf8" });
  if (sent.error) return console.log("Forged advertisements need python3: install it");
  assert.equal(sent.status, 0, sent.stderr);
}

/** The operator's IPv6 networks, TCP, UDP and ICMPv6, and nothing else there. */
async function lookAtIpv6Routes(one: Observed, stranger: Observed): Promise<void> {
  set("one", vpc("mine", true));
  assert.equal(await reach(one, "fd20:1::1"), "", "refused by default");
  set("one", vpc("mine", true, ["fd20:1::/32"]));
  // Of its addresses the machine takes the one that is nearest to the destination.
  await until(async () => (await answer(one, "fd20:1::1")) === "corp saw fd20:1::9");
  assert.equal(await ping6(one, "fd20:1::1"), "answered");
  assert.equal(await ask6(one, "fd20:1::1"), "corp saw fd20:1::9", "UDP");
  const all = (from: Observed, to: string) => Promise.all([reach(from, to), ping6(from, to), ask6(from, to)]);
  for (const never of ["fd30:1::1", "fd20:1::9", "2606:4700:113::1", "fd62:6572:7468:0::1"])
    assert.deepEqual(await all(one, never), ["", "silence", "silence"], never);
  assert.deepEqual(await all(stranger, "fd20:1::1"), ["", "silence", "silence"], "another VPC");
  set("one", vpc("mine", true));
  await until(async () => (await reach(one, "fd20:1::1")) === "");
}

/** Asks for an echo (ICMPv6, type 128); empty where nobody can. */
async function ping6(from: Observed, host: string): Promise<string> {
  const script = `import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6)
s.settimeout(2)
try:
    s.sendto(bytes([128, 0, 0, 0, 0, 0, 0, 1]) + b"hello", ("${host}", 0)); print("answered" if s.recv(100)[8:] == b"hello" else "other")
except OSError: print("silence")`;
  return (await run(from, `python3 -c '${script}'`)).output.trim();
}

/** Sends a datagram and waits for its answer. */
async function ask6(from: Observed, host: string): Promise<string> {
  const script = `const u = require("dgram").createSocket("udp6"); const say = (text) => { console.log(text); process.exit() }; u.on("error", () => say("silence")).on("message", (m) => say(String(m))); u.send("?", 7000, "${host}"); setTimeout(say, 2000, "silence")`;
  return (await run(from, `node -e '${script}'`)).output.trim();
}

async function lookAtRoutes(one: Observed, two: Observed, stranger: Observed): Promise<void> {
  assert.equal(await reach(one, "10.20.0.1"), "", "refused by default");
  set("one", vpc("mine", true, ["10.20.0.0/16"]));
  await until(async () => (await answer(one, "10.20.0.1")) === "corp saw 203.0.113.1");
  // A change comes to one workload after another, and does not part them meanwhile.
  assert.equal(await reach(two, "10.20.0.1"), "", "the routes have not come to it");
  assert.equal(await answer(one, addressOf(two)), `two saw ${addressOf(one)}`);
  assert.equal(await answer(two, addressOf(one)), `one saw ${addressOf(two)}`);
  assert.equal(await reach(one, "10.30.0.1"), "", "another network");
  assert.equal(await reach(one, "10.20.0.9"), "", "an address of the machine within the route");
  assert.equal(await reach(stranger, "10.20.0.1"), "", "another VPC");
  // A route that covers everything, and one within it, which the kernel would refuse beside it.
  set("one", vpc("mine", true, ["0.0.0.0/0", "10.20.0.0/16"]));
  await until(async () => (await answer(one, "10.30.0.1")) === "corp saw 203.0.113.1");
  for (const never of ["169.254.169.254", "10.20.0.9", "198.18.0.1", "203.0.113.1", addressOf(stranger)])
    assert.equal(await reach(one, never), "", never);
}

/** A workload with rules goes to the operator's networks through the proxy, which has the same bounds. */
async function lookAtProxyRoutes(ruled: Observed): Promise<void> {
  const never = ["10.20.0.9", "203.0.113.1", "198.18.0.1", "169.254.169.254", "127.0.0.1", "10.30.0.1"];
  const listed = compileNetwork({ proxy: { allowedDomains: ["10.20.0.1", ...never] } });
  const web = async (host: string): Promise<string> => {
    const ask = `exec 3<>/dev/tcp/127.0.0.1/988; printf "GET http://${host}/ HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\n\\r\\n" >&3; cat <&3`;
    return (await run(ruled, `timeout 50 bash -c '${ask}'`)).output;
  };
  set("ruled", vpc("mine", true), listed);
  assert.match(await web("10.20.0.1"), /403 .*destination_forbidden/is, "refused by default");
  set("ruled", vpc("mine", true, ["10.20.0.0/16"]), listed);
  assert.match(await web("10.20.0.1"), /200 OK.*web of corp/s);
  assert.match(await web("10.30.0.1"), /403 .*destination_forbidden/is, "another network");
  set("ruled", vpc("mine", true, ["0.0.0.0/0"]), listed);
  assert.match(await web("10.30.0.1"), /200 OK.*web of corp/s);
  for (const host of never.slice(0, -1)) assert.match(await web(host), /403 .*destination_forbidden/is, host);
}

/** Open connections end when the VPC no longer allows them. */
async function lookAtChanges(one: Observed, two: Observed): Promise<void> {
  set("one", vpc("mine", true, ["10.20.0.0/16"]));
  set("two", vpc("mine", true, ["10.20.0.0/16"]));
  await until(async () => (await answer(one, "two.lab.internal")) !== "");
  for (const [name, address] of [
    ["neighbour", addressOf(two)],
    ["route", "10.20.0.1"],
  ] as const) {
    await run(one, `(timeout 120 bash -c 'cat < /dev/tcp/${address}/7001 > /tmp/${name}' > /dev/null 2>&1 &)`);
    await until(async () => (await run(one, `test -s /tmp/${name} && echo yes; true`)).output !== "");
  }
  for (const uid of ["one", "two"]) set(uid, vpc("mine", false));
  await until(async () => (await reach(one, addressOf(two))) === "" && (await reach(one, "10.20.0.1")) === "");
  const size = async (): Promise<string> => (await run(one, "sleep 1; stat -c %s /tmp/neighbour /tmp/route")).output;
  await until(async () => {
    const before = await size();
    return (await size()) === before;
  });
  assert.equal(await resolve(one, "two.lab.internal", 4), "ENOTFOUND", "internal is off");
  assert.doesNotMatch(ruleset(), /10\.20\.0\.0/, "no rule stays");
}

/** Another server finds the workloads, and sets their rules before anything passes. */
async function lookAtRestart(one: Observed): Promise<void> {
  for (const uid of ["one", "two"]) set(uid, vpc("mine", true));
  await driver.stop("keep");
  listeners.clear();
  driver = await open();
  await until(async () => (await answer(one, "two.lab.internal")) !== "");
  assert.equal([...ruleset().matchAll(/^table \w+ workloads_/gm)].length, 2, "one table of each family");
  await driver.destroy("two", { graceMs: 0 });
  found.delete("two");
  assert.equal(await resolve(one, "two.lab.internal", 4), "ENOTFOUND");
  const next = await box("next");
  assert.equal(addressOf(next), addresses.get("two"), "the address has another workload");
  assert.equal(await reach(one, addressOf(next)), "", "which is nobody's neighbour");
}

async function box(uid: string): Promise<Observed> {
  const made = await driver.create(spec(uid));
  found.set(uid, made);
  await run(made, `(node -e '${SERVERS}' ${uid} ${hasIpv6 ? "" : EVERY_IPV4} > /tmp/up 2>&1 &)`);
  await until(async () => (await run(made, "grep -s up /tmp/up; true")).output !== "");
  addresses.set(uid, (await run(made, "hostname -I")).output.split(" ")[0] ?? "");
  return made;
}

function addressOf({ uid }: Observed): string {
  return addresses.get(uid) ?? "";
}

function macOf({ pid }: Observed): string {
  return macAt(Number(pid));
}

function macAt(pid: number): string {
  const text = execFileSync("nsenter", ["-t", String(pid), "-n", "ip", "link", "show", "eth0"], { encoding: "utf8" });
  return /link\/ether (\S+)/.exec(text)?.[1] ?? "";
}

function ruleset(): string {
  return execFileSync("nft", ["list", "ruleset"], { encoding: "utf8" });
}

async function resolve(from: Observed, name: string, family: 4 | 6): Promise<string> {
  const script = `const r = new (require("dns").Resolver)(); r.setServers(["198.18.0.1"]); r.resolve${family}("${name}", (e, a) => console.log(e ? e.code : a[0]))`;
  return (await run(from, `node -e '${script}'`)).output.trim();
}

function spec(uid: string): WorkloadSpec {
  const limits = { memoryMb: 256, cpus: 1 };
  return { uid, name: "box", image: "berth/base-image:latest", env: {}, limits, network: "outbound" };
}

/** Waits longer than `reach`, because a busy machine may need seconds to answer. */
function answer(from: Observed, host: string): Promise<string> {
  return reach(from, host, 20);
}

/** What is dropped on the way is waited for in vain. */
async function reach(from: Observed, host: string, waitS = 2): Promise<string> {
  return (await run(from, `timeout ${waitS} bash -c 'cat < /dev/tcp/${host}/7000' 2>/dev/null; true`)).output;
}
