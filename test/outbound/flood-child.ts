/**
 * Run by flood.test.ts in network and mount namespaces of its own. One workload floods the packet filter with beginnings
 * of connections; the kernel's table of connections belongs to all workloads, so the filter counts those of each.
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { compileNetwork } from "../../src/kinds/workload/network.ts";
import type { Observed, WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine } from "../local/machine.ts";
import { run } from "../local/run.ts";
import { until } from "../local/until.ts";
import { startWorld, WORLD } from "./world.ts";

const CONNECTIONS_MAX = 64;
/** Connections that begin at the same moment may be some more than the limit. */
const ENTRIES_MAX = 80;
const FLOOD = 2000;
/** Packets to this address reach the world, where nobody has the address. */
const SILENT = "198.51.100.1";
const GATEWAY = "198.18.0.1";

const [, , folder = ""] = process.argv;
// Half-open entries end in a short time here; the kernel's own is two minutes.
for (const name of ["tcp_timeout_syn_sent", "tcp_timeout_syn_recv", "udp_timeout", "udp_timeout_stream"])
  writeFileSync(`/proc/sys/net/netfilter/nf_conntrack_${name}`, "20");
const world = await startWorld({ folder });
const machine = new LocalMachine();
const OPEN = compileNetwork({});
const RULED = compileNetwork({ proxy: { allowedDomains: ["good.test"] } });
const driver = await machine.open({
  poolSize: 0,
  connectionsMax: CONNECTIONS_MAX,
  egress: {
    rules: { of: async (uid) => (uid.startsWith("ruled") ? RULED : OPEN), onChange: () => () => {} },
    resolve: async () => [WORLD],
  },
});
try {
  assert.equal((await driver.probe()).outbound, "nat", (await driver.probe()).missing.join(" "));
  await look();
} finally {
  await driver.stop("kill");
  await world[Symbol.asyncDispose]();
  machine.dispose();
}

async function look(): Promise<void> {
  const [flooder, other, ruledFlooder, ruledOther] = await Promise.all(
    ["flooder", "other", "ruled-flooder", "ruled-other"].map((uid) => driver.create(spec(uid))),
  );
  assert.ok(flooder && other && ruledFlooder && ruledOther);
  await until(async () => (await reach(flooder)) !== "" && (await reach(other)) !== "");
  await until(async () => /200 OK/.test(await web(ruledOther)));
  await run(other, `(timeout 600 bash -c 'cat < /dev/tcp/${WORLD}/7001 > /tmp/stays' > /dev/null 2>&1 &)`);

  // To a host that says nothing: each packet begins a connection that is never answered.
  flood(flooder, "tcp", SILENT, 80);
  const halfOpen = entriesOf(flooder);
  assert.ok(halfOpen > 0 && halfOpen <= ENTRIES_MAX, `${halfOpen} entries of a flood to a silent host`);
  await goesOn(other, ruledOther);

  // To the proxy, by a workload that is led there: its answers are never confirmed.
  execFileSync("nsenter", [...inside(ruledFlooder), "nft", "-f", "-"], {
    input: "table ip mute { chain out { type filter hook output priority 0; tcp flags rst drop; }; }",
  });
  flood(ruledFlooder, "tcp", WORLD, 80);
  const led = entriesOf(ruledFlooder);
  assert.ok(led > 0 && led <= ENTRIES_MAX, `${led} entries of a flood to the proxy`);
  await goesOn(other, ruledOther);

  // Questions for names leave no entry at all.
  const before = entriesOf(flooder);
  flood(flooder, "udp", GATEWAY, 53);
  assert.ok(entriesOf(flooder) <= before, "entries of a flood to the name server");
  await goesOn(other, ruledOther);

  await until(async () => entriesOf(flooder) + entriesOf(ruledFlooder) === 0);
  assert.notEqual(await reach(flooder), "", "the flooder itself connects again");
}

/** An open connection of another workload says more, and new ones come about, with rules and without. */
async function goesOn(other: Observed, ruledOther: Observed): Promise<void> {
  const size = async (): Promise<number> => Number((await run(other, "stat -c %s /tmp/stays")).output);
  const before = await size();
  await until(async () => (await size()) > before);
  assert.match(await reach(other), /^seen as/);
  assert.match(await web(ruledOther), /200 OK/);
}

/** Packets with a source port each, as nobody inside may send them: the machine's root does it in the workload's place. */
function flood(from: Observed, protocol: "tcp" | "udp", to: string, port: number): void {
  const script = `import socket, struct
own, to, port = "${addressOf(from)}", "${to}", ${port}
tcp = "${protocol}" == "tcp"
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP if tcp else socket.IPPROTO_UDP)
s.bind((own, 0))
def sum16(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16: total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
for n in range(${FLOOD}):
    source = 10000 + n
    def segment(check):
        if tcp: return struct.pack("!HHIIBBHHH", source, port, n, 0, 5 << 4, 2, 1024, check, 0)
        return struct.pack("!HHHH", source, port, 8, 0)
    body = segment(0)
    pseudo = socket.inet_aton(own) + socket.inet_aton(to) + struct.pack("!BBH", 0, 6, len(body))
    s.sendto(segment(sum16(pseudo + body)), (to, 0))`;
  const sent = spawnSync("nsenter", [...inside(from), "python3", "-c", script], { encoding: "utf8" });
  assert.equal(sent.status, 0, sent.stderr);
}

function inside({ pid }: Observed): string[] {
  return ["-t", String(pid), "-n"];
}

/** Entries of the kernel's table that this workload began. */
function entriesOf(from: Observed): number {
  const first = new RegExp(` src=${addressOf(from).replaceAll(".", "\\.")} dst=`);
  return readFileSync("/proc/net/nf_conntrack", "utf8")
    .split("\n")
    .filter((line) => first.exec(line)?.index === line.indexOf(" src=")).length;
}

function addressOf(box: Observed): string {
  const text = execFileSync("nsenter", [...inside(box), "ip", "-4", "address", "show", "eth0"], { encoding: "utf8" });
  return /inet ([0-9.]+)/.exec(text)?.[1] ?? assert.fail(text);
}

async function reach(from: Observed): Promise<string> {
  return (await run(from, `timeout 20 bash -c 'cat < /dev/tcp/${WORLD}/7000' 2>/dev/null; true`)).output;
}

async function web(from: Observed): Promise<string> {
  const ask = `exec 3<>/dev/tcp/${WORLD}/80; printf "GET / HTTP/1.1\\r\\nHost: good.test\\r\\nConnection: close\\r\\n\\r\\n" >&3; cat <&3`;
  return (await run(from, `timeout 20 bash -c '${ask}' 2>/dev/null; true`)).output;
}

function spec(uid: string): WorkloadSpec {
  const limits = { memoryMb: 256, cpus: 1 };
  return { uid, name: "box", image: "berth/base-image:latest", env: {}, limits, network: "outbound" };
}
