/** Run by nat.test.ts in a network namespace of its own: this is the machine, and a second namespace is the internet. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { compileNetwork } from "../../src/kinds/workload/network.ts";
import type { SourceAddresses, SourceChoice } from "../../src/lib/network/egress/source-addresses.ts";
import type { WorkloadRules } from "../../src/lib/network/egress/workload-rules.ts";
import type { Observed, WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine } from "./machine.ts";
import { run } from "./run.ts";
import { until } from "./until.ts";

const ip = (commands: string[], pid?: number): void => {
  const enter = pid === undefined ? [] : ["nsenter", "-t", String(pid), "-n"];
  const [program = "ip", ...args] = [...enter, "ip", "-batch", "-"];
  execFileSync(program, args, { input: `${commands.join("\n")}\n` });
};

// Answers every connection with the address it came from, on any address of that namespace.
const WEB = `require("http").createServer((q, s) => s.end("web for " + q.headers.host + " from " + q.socket.remoteAddress)).listen(80, "0.0.0.0"); require("net").createServer(s => s.once("data", () => s.end("no TLS here"))).listen(443, "0.0.0.0");`;
const server = `require("net").createServer(s => s.end("seen as " + s.remoteAddress)).listen(7000, "0.0.0.0", () => console.log("up"))`;
// The same over UDP, over IPv6, and for a connection that stays open.
const UDP = `for (const [type, address] of [["udp4", "0.0.0.0"], ["udp6", "::"]]) { const u = require("dgram").createSocket({ type, ipv6Only: type === "udp6" }); u.on("error", () => {}); u.on("message", (_, from) => u.send("seen as " + from.address, from.port, from.address)); u.bind(7000, address); }`;
const SIX = `require("net").createServer(s => s.end("seen as " + s.remoteAddress)).on("error", () => {}).listen({ port: 7000, host: "::", ipv6Only: true });`;
const STAYS = `require("net").createServer(s => { s.on("error", () => {}); s.write("hello "); setInterval(() => s.write("."), 100); }).listen(7001, "0.0.0.0");`;
// Answers when everything has come.
const TAKES = `require("net").createServer({ allowHalfOpen: true }, s => { s.on("error", () => {}).on("end", () => s.end("done")).resume(); }).listen(7002, "0.0.0.0");`;
const internet = spawn("unshare", ["-n", process.execPath, "-e", WEB + UDP + SIX + STAYS + TAKES + server], {
  stdio: ["ignore", "pipe", "inherit"],
});
process.once("exit", () => internet.kill());
await once(internet.stdout, "data");
const pid = Number(internet.pid);
ip([
  "link set lo up",
  `link add world0 type veth peer name host0 netns ${pid}`,
  "address add 203.0.113.1/24 dev world0",
]);
ip([
  "link set world0 up",
  "route add 198.51.100.0/24 via 203.0.113.2",
  "route add 10.9.9.9/32 via 203.0.113.2",
  "route add 169.254.169.254/32 via 203.0.113.2",
]);
const addresses = ["203.0.113.2/24", "10.9.9.9/32", "169.254.169.254/32"];
ip([...addresses.map((address) => `address add ${address} dev host0`), "link set host0 up", "link set lo up"], pid);

// Addresses of egress gateways. A kernel without IPv6 has none of the second kind.
const hasIpv6 = existsSync("/proc/sys/net/ipv6");
ip(["203.0.113.11", "203.0.113.12"].map((address) => `address add ${address}/32 dev world0`));
if (hasIpv6) {
  ip(["2606:4700:113::1/64", "2606:4700:113::11/128"].map((address) => `address add ${address} dev world0 nodad`));
  ip(["address add 2606:4700:113::2/64 dev host0 nodad"], pid);
}

/** An echo request of each family, to the other side and from an address of the gateway. */
const ICMP = {
  ipv4: {
    family: "AF_INET",
    protocol: 1,
    type: 8,
    to: "203.0.113.2",
    counted: "icmp type echo-request ip saddr 203.0.113.11",
  },
  ipv6: {
    ...{ family: "AF_INET6", protocol: 58, type: 128, to: "2606:4700:113::2" },
    counted: "icmpv6 type echo-request ip6 saddr 2606:4700:113::11",
  },
};

const machine = new LocalMachine();
const OPEN = compileNetwork({});
const RULED = compileNetwork({ proxy: { allowedDomains: ["good.test"] } });
const ruled = new Set(["ruled"]);
/** Rules of workloads behind a gateway. */
const behind = new Map<string, WorkloadRules>();
const from = (ipv4: string[], ipv6: string[] = [], choice: SourceChoice = "destination"): SourceAddresses => ({
  ...{ gateway: "gw", ipv4, ipv6, choice },
});
const listeners = new Set<(uid: string) => void>();
const refused: string[] = [];
const counted: string[] = [];
const driver = await machine.open({
  poolSize: 1,
  connectionsMax: 64,
  ipv6: hasIpv6,
  egress: {
    rules: {
      of: async (uid) => behind.get(uid) ?? (ruled.has(uid) ? RULED : OPEN),
      onChange(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    resolve: async () => ["203.0.113.2"],
    onBytes: (uid) => counted.push(uid),
    onRefused: (uid, { host, port }) => refused.push(`${uid} ${host}:${port}`),
  },
});
try {
  await look();
} finally {
  await driver.stop("kill");
  internet.kill();
}
// The kernel removes the interfaces of a namespace some time after its last process.
await until(async () => !/-br|-v\d/.test(execFileSync("ip", ["link"], { encoding: "utf8" })));
assert.doesNotMatch(ruleset(), /workloads_/);
machine.dispose();

async function look(): Promise<void> {
  const probe = await driver.probe();
  assert.equal(probe.outbound, "nat", probe.missing.join(" "));
  await driver.stocked();
  const one = await driver.create(spec("one"));
  const two = await driver.create(spec("two"));
  const closed = await driver.create({ ...spec("closed"), network: "closed" });

  await until(async () => (await reach(one, "203.0.113.2", 20)) !== ""); // its rules are read in a moment
  assert.equal(await reach(one, "203.0.113.2", 50), "seen as 203.0.113.1", "out, behind the machine's address");
  for (const host of ["10.9.9.9", "169.254.169.254"]) {
    const near = execFileSync("bash", ["-c", `cat < /dev/tcp/${host}/7000`], { encoding: "utf8" });
    assert.match(near, /seen/, "the machine itself reaches it");
    assert.equal(await reach(one, host), "", host);
  }
  assert.equal(await reach(closed, "203.0.113.2"), "");
  assert.equal((await run(one, "env | grep -ci proxy")).output.trim(), "0");

  await run(two, `node -e 'require("net").createServer(s => s.end("hi")).listen(7000)' > /dev/null 2>&1 &`);
  const [address = ""] = (await run(two, "hostname -I")).output.split(" ");
  assert.match(address, /^198\.18\./);
  assert.equal(await reach(one, address), "", "a neighbour");
  const local = spawn(process.execPath, ["-e", server], { stdio: ["ignore", "pipe", "inherit"] });
  process.once("exit", () => local.kill());
  await once(local.stdout, "data");
  for (const host of ["198.18.0.1", "203.0.113.1"]) assert.equal(await reach(one, host), "", `the machine at ${host}`);
  const stats = await driver.stats("one");
  assert.ok((stats.sentBytes ?? 0) > 0 && (stats.receivedBytes ?? 0) > 0);
  local.kill();
  await lookAtBytes(two);
  const [opened = 0, turnedAway = 0] = await openMany(two);
  // The kernel counts to 64; connections that begin at the same moment may be one or two more.
  assert.ok(opened >= 60 && opened <= 70 && opened + turnedAway === 80, `${opened} connections at once`);
  await lookFromOutside(address);
  await lookAtHalfOpen();
  await lookAtBandwidth(two);
  await lookAtSources(one);
  await lookAtRules(one);
}

/** Bytes of a workload are those that the other side counts, in frames of Ethernet; a neighbour's address may be asked for. */
async function lookAtBytes(box: Observed): Promise<void> {
  const inside = ["-t", String(pid), "-n", "nft"];
  const table = `table inet bytes { chain in { type filter hook input priority 0; tcp dport 7002 counter; }; chain out { type filter hook output priority 0; tcp sport 7002 counter; }; }`;
  await until(async () => (await reach(box, "203.0.113.2", 2)) !== "");
  execFileSync("nsenter", [...inside, "-f", "-"], { input: table });
  const before = await driver.stats("two");
  const send = `const s = require("net").connect(7002, "203.0.113.2"); s.resume().on("close", () => process.exit()); s.end(Buffer.alloc(3000000))`;
  await run(box, `timeout 50 node -e '${send}'`);
  const after = await driver.stats("two");
  const text = execFileSync("nsenter", [...inside, "list", "table", "inet", "bytes"], { encoding: "utf8" });
  const [sent = 0, received = 0] = [...text.matchAll(/packets (\d+) bytes (\d+)/g)].map(
    ([, packets, bytes]) => Number(bytes) + 14 * Number(packets),
  );
  assert.ok(sent > 3_000_000);
  for (const [counted, outside] of [
    [(after.sentBytes ?? 0) - (before.sentBytes ?? 0), sent],
    [(after.receivedBytes ?? 0) - (before.receivedBytes ?? 0), received],
  ] as const)
    assert.ok(counted >= outside && counted - outside < 2000, `${counted} bytes, ${outside} outside`);
}

/** How many of 80 connections were opened, and how many refused. */
async function openMany(from: Observed): Promise<number[]> {
  const many = `let open = 0, refused = 0; const told = () => { if (open + refused === 80) { console.log(open, refused); process.exit() } }; for (let n = 0; n < 80; n++) require("net").connect(7001, "203.0.113.2").on("connect", () => { open++; told() }).on("error", () => { refused++; told() })`;
  return (await run(from, `node -e '${many}'`)).output.trim().split(" ").map(Number);
}

/** A host of the network outside that sends packets for addresses of workloads to the machine gets no answer. */
async function lookFromOutside(workload: string): Promise<void> {
  ip(["route add 198.18.0.0/15 via 203.0.113.1"], pid);
  const outside = (script: string): string => {
    const enter = ["-t", String(pid), "-n", process.execPath, "-e", script];
    return execFileSync("nsenter", enter, { encoding: "utf8" }).trim();
  };
  const dialled = (host: string, port: number): string =>
    outside(
      `const s = require("net").connect(${port}, "${host}"); const tell = (text) => { console.log(text); process.exit() }; s.on("connect", () => tell("open")).on("error", () => tell("shut")); setTimeout(() => tell("shut"), 3000)`,
    );
  assert.equal(dialled(workload, 7000), "shut", "a port of a workload");
  assert.equal(dialled("198.18.0.1", 53), "shut", "the name server of workloads");
  const ports = [...ruleset().matchAll(/dnat ip to [\d.]+:(\d+)/g)].map(([, port]) => Number(port));
  assert.equal(ports.length, 2);
  for (const port of ports) assert.equal(dialled("198.18.0.1", port), "shut", "the proxy of workloads");
  ip(["route delete 198.18.0.0/15 via 203.0.113.1"], pid);
}

/** Connections that nobody answers fill a workload's own count, and not that of the next workload with its address. */
async function lookAtHalfOpen(): Promise<void> {
  const addressOf = async (box: Observed): Promise<string> =>
    (await run(box, "hostname -I")).output.split(" ")[0] ?? "";
  const flooder = await driver.create(spec("flooder"));
  const address = await addressOf(flooder);
  await until(async () => (await reach(flooder, "203.0.113.2", 2)) !== "");
  // The kernel keeps a half-open connection for two minutes, which a busy machine may take for the next steps.
  writeFileSync("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_syn_sent", "3600");
  // The internet of this test has a way to this network and drops what comes for it.
  const flood = `let refused = 0; for (let n = 0; n < 80; n++) require("net").connect(7001, "198.51.100.7").on("error", () => { if (++refused === 10) { console.log("full"); process.exit() } })`;
  assert.equal((await run(flooder, `timeout 60 node -e '${flood}'`)).output, "full\n");
  await driver.destroy("flooder");
  const heirs: Observed[] = [];
  let heir: Observed | undefined;
  while (!heir && heirs.length < 8) {
    const next = await driver.create(spec(`heir${heirs.length}`));
    heirs.push(next);
    if ((await addressOf(next)) === address) heir = next;
  }
  assert.ok(heir, "a later workload has the address");
  await until(async () => (await reach(heir, "203.0.113.2", 2)) !== "");
  const [opened = 0] = await openMany(heir);
  assert.ok(opened >= 60, `${opened} connections at once`);
  for (const { uid } of heirs) await driver.destroy(uid);
}

/** A limit holds in both directions and changes live, and nobody inside can lift it. */
async function lookAtBandwidth(box: Observed): Promise<void> {
  const limit = (sendMbps: number | null, receiveMbps: number | null): void => {
    behind.set("two", { ...OPEN, bandwidth: { sendMbps, receiveMbps } });
    for (const listener of listeners) listener("two");
  };
  const queues = async (): Promise<string> => {
    const host = execFileSync("tc", ["qdisc"], { encoding: "utf8" });
    const inside = execFileSync("nsenter", ["-t", String(box.pid), "-n", "tc", "qdisc"], { encoding: "utf8" });
    return [host, inside].map((text) => /tbf .* rate (\S+)/.exec(text)?.[1] ?? "none").join(" ");
  };
  const have = (expected: string): Promise<void> =>
    until(async () => {
      await run(box, "true");
      return (await queues()) === expected;
    });
  limit(4, 8);
  await have("8Mbit 4Mbit");
  // 250 KB take half a second at 4 Mbit/s, less the burst of 64 KB.
  const send = `const s = require("net").connect(7002, "203.0.113.2"); const t = Date.now(); s.on("data", () => { console.log(Date.now() - t); process.exit() }); s.end(Buffer.alloc(250000))`;
  assert.ok(Number((await run(box, `timeout 50 node -e '${send}'`)).output) >= 350);
  const gone = await run(box, "tc qdisc del dev eth0 root 2>&1; ip link set eth0 txqueuelen 1 2>&1; true");
  assert.equal(await queues(), "8Mbit 4Mbit", gone.output);
  limit(null, 2);
  await have("2Mbit none");
  behind.delete("two");
  for (const listener of listeners) listener("two");
  await have("none none");
}

async function lookAtSources(one: Observed): Promise<void> {
  const give = (sources: SourceAddresses, rules = OPEN): void => {
    behind.set("fixed", { ...rules, sources });
    for (const listener of listeners) listener("fixed");
  };
  give(from(["203.0.113.11"], ["2606:4700:113::11"]));
  const box = await driver.create(spec("fixed"));
  assert.equal(await source(box, "203.0.113.2"), "seen as 203.0.113.11", "TCP");
  assert.equal(await ask(box, "udp4", "203.0.113.2"), "seen as 203.0.113.11", "UDP");
  await ping(box, ICMP.ipv4);
  assert.equal(await source(one, "203.0.113.2"), "seen as 203.0.113.1", "a workload without a gateway");
  if (hasIpv6) {
    assert.equal(await source(box, "2606:4700:113::2"), "seen as 2606:4700:113::11", "TCP over IPv6");
    assert.equal(await ask(box, "udp6", "2606:4700:113::2"), "seen as 2606:4700:113::11", "UDP over IPv6");
    await ping(box, ICMP.ipv6);
    assert.equal(await reach(one, "2606:4700:113::2"), "", "IPv6 without an address of a gateway");
    for (const own of ["2606:4700:113::1", "fd62:6572:7468:0::1"])
      assert.equal(await reach(box, own), "", `the machine at ${own}`);
  }

  // Another address: new connections leave from it at once, and an open one from the old address gets nothing more.
  const watch = `exec 3<>/dev/tcp/203.0.113.2/7001; head -c 20 <&3 > /dev/null; touch /tmp/open; cat <&3 > /tmp/stays`;
  await run(box, `(timeout 120 bash -c '${watch}' > /dev/null 2>&1 &)`);
  await until(async () => (await run(box, "test -s /tmp/stays && echo yes; true")).output !== "");
  give(from(["203.0.113.12"]));
  await until(async () => (await source(box, "203.0.113.2")) === "seen as 203.0.113.12");
  // The kernel delivers what is on its way; then nothing more.
  const size = async (): Promise<string> => (await run(box, "sleep 1; stat -c %s /tmp/stays")).output;
  await until(async () => {
    const before = await size();
    return (await size()) === before;
  });
  if (hasIpv6) assert.equal(await reach(box, "2606:4700:113::2"), "", "the gateway has no IPv6 address any more");

  give(from(["203.0.113.11", "203.0.113.12"], [], "turn"));
  const seen = new Set<string>();
  await until(async () => seen.add(await source(box, "203.0.113.2")).size === 2);
  assert.deepEqual([...seen].sort(), ["seen as 203.0.113.11", "seen as 203.0.113.12"]);

  // With rules it is the proxy that leaves from the address; without an address nothing leaves.
  give(from(["203.0.113.12"]), RULED);
  await until(async () => (await reach(box, "203.0.113.2", 1)) === "");
  const web = `exec 3<>/dev/tcp/203.0.113.2/80; printf "GET /source HTTP/1.1\\r\\nHost: good.test\\r\\nConnection: close\\r\\n\\r\\n" >&3; cat <&3`;
  assert.match((await run(box, `timeout 50 bash -c '${web}'`)).output, /from 203\.0\.113\.12/);
  give(from([]));
  assert.equal(await reach(box, "203.0.113.2"), "", "a gateway without an address");
  give(from(["203.0.113.12"]));
  assert.equal(await source(box, "203.0.113.2"), "seen as 203.0.113.12");
  assert.match(ruleset(), /chain from_198/);
  await driver.destroy("fixed", { graceMs: 0 });
  assert.doesNotMatch(ruleset(), /chain from_198|203\.0\.113\.12/, "a workload takes its rules along");
}

/** A workload asks for an echo; a rule of the other side counts questions from the address. */
async function ping(box: Observed, { family, protocol, type, to, counted }: (typeof ICMP)["ipv4"]): Promise<void> {
  if ((await run(box, "command -v python3")).exitCode !== 0) return console.log("ICMP needs python3: install it");
  const table = `table inet seen_${protocol} { chain in { type filter hook input priority 0; ${counted} counter; }; }`;
  const inside = ["-t", String(pid), "-n", "nft"];
  execFileSync("nsenter", [...inside, "-f", "-"], { input: table });
  // An echo request: its type, code 0, a checksum that the kernel fills in, id and number.
  const script = `import socket; s = socket.socket(socket.${family}, socket.SOCK_DGRAM, ${protocol}); s.settimeout(20); s.sendto(bytes([${type}, 0, 0, 0, 0, 0, 0, 1]) + b"hello", ("${to}", 0)); print(s.recv(100)[8:].decode())`;
  const { output } = await run(box, `python3 -c '${script}'`);
  const list = [...inside, "list", "table", "inet", `seen_${protocol}`];
  assert.match(
    `${output} ${execFileSync("nsenter", list, { encoding: "utf8" })}`,
    /^hello\s.* counter packets 1 /s,
    to,
  );
}

/** Asks until the answer comes: rules of a workload are read in a moment. */
async function source(box: Observed, host: string): Promise<string> {
  let seen = "";
  await until(async () => {
    seen = await reach(box, host, 20);
    return seen !== "";
  });
  return seen;
}

function ruleset(): string {
  return execFileSync("nft", ["list", "ruleset"], { encoding: "utf8" });
}

async function ask(box: Observed, type: "udp4" | "udp6", host: string): Promise<string> {
  const script = `const u = require("dgram").createSocket("${type}"); u.on("message", (m) => { console.log(String(m)); process.exit() }); setInterval(() => u.send("?", 7000, "${host}"), 200).ref(); u.send("?", 7000, "${host}");`;
  return (await run(box, `timeout 50 node -e '${script}'`)).output.trim();
}

async function lookAtRules(one: Observed): Promise<void> {
  const box = await driver.create(spec("ruled"));
  assert.equal(await reach(box, "203.0.113.2"), "", "raw TCP");
  const web = async (from: Observed, host: string): Promise<string> => {
    const ask = `exec 3<>/dev/tcp/203.0.113.2/80; printf "GET / HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\n\\r\\n" >&3; cat <&3`;
    return (await run(from, `timeout 50 bash -c '${ask}'`)).output;
  };
  assert.match(await web(box, "good.test"), /200 OK.*web for good\.test/s);
  assert.match(await web(box, "bad.test"), /403 .*firewall_blocked/is);
  const tls = async (servername: string): Promise<string> => {
    const script = `require("tls").connect({ host: "203.0.113.2", port: 443, servername: "${servername}" }).on("error", e => console.log(e.code))`;
    return (await run(box, `node -e '${script}'`)).output.trim();
  };
  assert.match(await tls("good.test"), /WRONG_VERSION|PACKET_LENGTH/, "the server itself answered");
  assert.match(await tls("bad.test"), /ACCESS_DENIED/);
  const script = `const r = new (require("dns").Resolver)(); r.setServers(["198.18.0.1"]); r.resolve4("bad.test", e => console.log(e.code))`;
  assert.equal((await run(box, `node -e '${script}'`)).output.trim(), "EREFUSED");
  assert.deepEqual(counted, [], "bytes through the workload's own interface are counted there");
  assert.deepEqual(refused, ["ruled bad.test:80", "ruled bad.test:443"]);

  assert.match(await tls(""), /ACCESS_DENIED/, "TLS without a name");
  await lookAtDatagrams(one, box);

  // A change holds for what runs, in both directions; a connection and a flow of datagrams that are open get nothing more.
  const stays = "exec 3<>/dev/tcp/203.0.113.2/7001; cat <&3 > /tmp/tcp";
  const flows = `const u = require("dgram").createSocket("udp4"), fs = require("fs"); u.on("error", () => {}); u.on("message", () => fs.appendFileSync("/tmp/udp", ".")); setInterval(() => u.send("?", 7000, "203.0.113.2", () => {}), 50)`;
  await run(
    one,
    `(timeout 120 bash -c '${stays}' > /dev/null 2>&1 &); (timeout 120 node -e '${flows}' > /dev/null 2>&1 &)`,
  );
  await until(async () => (await run(one, "test -s /tmp/tcp && test -s /tmp/udp && echo yes; true")).output !== "");
  ruled.add("one");
  for (const listener of listeners) listener("one");
  await until(async () => (await reach(one, "203.0.113.2")) === "");
  const sizes = async (): Promise<string> => (await run(one, "sleep 1; stat -c %s /tmp/tcp /tmp/udp")).output;
  await until(async () => {
    const before = await sizes();
    return (await sizes()) === before;
  });
  assert.match(await web(one, "bad.test"), /403 .*firewall_blocked/is);
  ruled.delete("one");
  for (const listener of listeners) listener("one");
  await until(async () => (await reach(one, "203.0.113.2", 50)) !== "");
}

/** The other side counts packets: a packet that is dropped shows in no answer. */
async function lookAtDatagrams(open: Observed, restricted: Observed): Promise<void> {
  const inside = ["-t", String(pid), "-n", "nft"];
  const rules = "udp dport { 443, 7000 } counter; tcp dport 25 counter";
  const table = `table inet datagrams { chain in { type filter hook input priority 0; ${rules}; }; }`;
  execFileSync("nsenter", [...inside, "-f", "-"], { input: table });
  const targets = ["203.0.113.2", ...(hasIpv6 ? ["2606:4700:113::2"] : [])];
  const script = `const { createSocket } = require("dgram"); for (const host of ${JSON.stringify(targets)}) for (const port of [443, 7000]) { const u = createSocket(host.includes(":") ? "udp6" : "udp4"); u.on("error", () => {}); u.send("?", port, host, () => u.close()); }`;
  const counted = async (from: Observed): Promise<number[]> => {
    await run(from, `node -e '${script}'; timeout 2 bash -c 'exec 3<>/dev/tcp/203.0.113.2/25'`);
    const text = execFileSync("nsenter", [...inside, "list", "table", "inet", "datagrams"], { encoding: "utf8" });
    return [...text.matchAll(/packets (\d+)/g)].map(([, packets]) => Number(packets));
  };
  const [datagrams = 0, mail] = await counted(open);
  assert.ok(datagrams >= 2, "a workload without rules sends datagrams");
  assert.equal(mail, 0, "port 25 of anybody");
  assert.deepEqual(await counted(restricted), [datagrams, 0], "datagrams of a workload with rules");
}

function spec(uid: string): WorkloadSpec {
  const limits = { memoryMb: 256, cpus: 1 };
  return { uid, name: "box", image: "berth/base-image:latest", env: {}, limits, network: "outbound" };
}

/** What is dropped on the way is waited for in vain. */
async function reach(from: Observed, host: string, waitS = 2): Promise<string> {
  return (await run(from, `timeout ${waitS} bash -c 'cat < /dev/tcp/${host}/7000' 2>/dev/null; true`)).output;
}
