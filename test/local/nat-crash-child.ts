/**
 * Run by nat-crash.test.ts in a network namespace of its own: this is the machine, a second namespace is the internet and
 * the operator's network. A server in a process of its own gives workloads a gateway's address, a bandwidth limit and a
 * VPC with a route, and is killed: once while they run, once in the middle of starting others.
 */
import assert from "node:assert/strict";
import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { compileNetwork } from "../../src/kinds/workload/network.ts";
import { parseRoute } from "../../src/lib/network/egress/operator-networks.ts";
import type { WorkloadRules } from "../../src/lib/network/egress/workload-rules.ts";
import type { Observed, WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine, tracesOf } from "./machine.ts";
import { run } from "./run.ts";
import { until } from "./until.ts";

const OPEN = compileNetwork({});
const VPC = { id: "mine", name: "lab", internal: true, routes: [parseRoute("10.20.0.0/16", "")] };
const RULES: Record<string, WorkloadRules> = {
  fixed: {
    ...OPEN,
    sources: { gateway: "gw", ipv4: ["203.0.113.11"], ipv6: [], choice: "destination" },
    bandwidth: { sendMbps: 4, receiveMbps: 8 },
  },
  member: { ...OPEN, vpc: VPC },
};

/** The server that is killed. */
async function serve(folder: string): Promise<void> {
  const driver = await open(new LocalMachine(folder), async (uid) => RULES[uid] ?? OPEN);
  for (const uid of Object.keys(RULES)) await driver.create(spec(uid));
  console.log("started");
  for (let number = 0; ; number++) {
    await driver.create(spec(`more-${number}`));
    console.log("another");
    await driver.destroy(`more-${number}`, { graceMs: 0 });
  }
}

async function look(): Promise<void> {
  const internet = await startInternet();
  const before = { links: ip("link"), routes: ip("route"), queues: queues(), rules: ruleset() };
  const machine = new LocalMachine();
  try {
    const server = await startServer(machine.dataDir);
    await server.said("started");
    await server.kill();
    assert.match(ruleset(), /203\.0\.113\.11/, "the kernel holds what the killed server set");
    await lookAfterCrash(machine);
    const next = await startServer(machine.dataDir);
    await next.said("another");
    await next.kill();
    await lookAfterCrash(machine);
    await (await machine.open({ poolSize: 0 })).stop("kill");
    assert.equal(ip("link"), before.links, "no interface stays");
    assert.equal(ip("route"), before.routes, "no route stays");
    assert.equal(queues(), before.queues, "no queue stays");
    assert.equal(ruleset(), before.rules, "no rule stays");
    assert.deepEqual(tracesOf(machine.dataDir), []);
  } finally {
    internet.kill();
    await (await machine.open({ poolSize: 0 })).stop("kill");
    machine.dispose();
  }
}

/** The next start: nothing passes until the rules of a workload are read, then each of them holds again. */
async function lookAfterCrash(machine: LocalMachine): Promise<void> {
  const held = Promise.withResolvers<void>();
  const driver = await open(machine, async (uid) => {
    await held.promise;
    return RULES[uid] ?? OPEN;
  });
  try {
    const [fixed, member] = [await driver.observe("fixed"), await driver.observe("member")];
    assert.ok(fixed && member, "the workloads outlive the server");
    assert.doesNotMatch(ruleset(), /203\.0\.113\.11|10\.20\.0\.0/, "rules of the killed server");
    assert.equal(await reach(fixed, "203.0.113.2"), "", "no rules, no way out");
    assert.equal(await reach(member, "10.20.0.1"), "", "no rules, no route");
    assert.match(queues(), /rate 8Mbit/, "the limit is never lifted");
    held.resolve();
    await until(async () => (await reach(fixed, "203.0.113.2")) === "seen as 203.0.113.11");
    await until(async () => (await reach(member, "10.20.0.1")) === "seen as 203.0.113.1");
    assert.match(queues(), /rate 8Mbit/);
    assert.match(inside(fixed, "tc", "qdisc"), /rate 4Mbit/);
    assert.equal([...ruleset().matchAll(/chain from_/g)].length, 1, "one chain for the one workload behind a gateway");
    assert.equal([...ruleset().matchAll(/^table \w+ workloads_/gm)].length, 2, "one table of each family");
    await until(async () => {
      const alive = (await driver.list()).filter(({ state }) => state === "running").length;
      return [...ip("link").matchAll(/^\d+: \S+-v\d+@/gm)].length === alive;
    });
    for (const { uid } of await driver.list()) await driver.destroy(uid, { graceMs: 0 });
    assert.doesNotMatch(ruleset(), /203\.0\.113\.11|10\.20\.0\.0/, "a workload takes its rules along");
    await until(async () => !/-v\d+@/.test(ip("link")));
  } finally {
    held.resolve();
    await driver.stop("keep");
  }
}

const open = (machine: LocalMachine, of: (uid: string) => Promise<WorkloadRules>) =>
  machine.open({ poolSize: 0, egress: { rules: { of, onChange: () => () => {} } } });

async function startServer(folder: string) {
  const child: ChildProcessByStdio<null, Readable, null> = spawn(process.execPath, [import.meta.filename, folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = (): unknown => child.kill("SIGKILL");
  process.once("exit", stop);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    async said(line: string): Promise<void> {
      for (let next = await lines.next(); next.value !== line; next = await lines.next())
        assert.ok(!next.done, `the server ended before it said ${line}`);
    },
    async kill(): Promise<void> {
      process.off("exit", stop);
      stop();
      await once(child, "close");
    },
  };
}

/** Answers every connection with the address that it came from. */
async function startInternet() {
  const server = `require("net").createServer(s => s.end("seen as " + s.remoteAddress)).listen(7000, "0.0.0.0", () => console.log("up"))`;
  const internet = spawn("unshare", ["-n", process.execPath, "-e", server], { stdio: ["ignore", "pipe", "inherit"] });
  process.once("exit", () => internet.kill());
  await once(internet.stdout, "data");
  const enter = ["-t", String(internet.pid), "-n"];
  const batch = (program: string, args: string[], lines: string[]): unknown =>
    execFileSync(program, [...args, "-batch", "-"], { input: `${lines.join("\n")}\n` });
  batch(
    "ip",
    [],
    [
      "link set lo up",
      `link add world0 type veth peer name host0 netns ${internet.pid}`,
      "address add 203.0.113.1/24 dev world0",
      "address add 203.0.113.11/32 dev world0",
      // The kernel adds an address of its own in a moment of its own; the test compares routes.
      "link set world0 addrgenmode none",
      "link set world0 up",
      "route add 10.20.0.1/32 via 203.0.113.2",
    ],
  );
  batch(
    "nsenter",
    [...enter, "ip"],
    ["address add 203.0.113.2/24 dev host0", "address add 10.20.0.1/32 dev host0", "link set host0 up"],
  );
  return internet;
}

function spec(uid: string): WorkloadSpec {
  const limits = { memoryMb: 256, cpus: 1 };
  return { uid, name: "box", image: "berth/base-image:latest", env: {}, limits, network: "outbound" };
}

/** What is dropped on the way is waited for in vain. */
async function reach(from: Observed, host: string): Promise<string> {
  return (await run(from, `timeout 2 bash -c 'cat < /dev/tcp/${host}/7000' 2>/dev/null; true`)).output;
}

const output = (program: string, args: string[]): string => execFileSync(program, args, { encoding: "utf8" });

function ip(what: "link" | "route"): string {
  return output("ip", what === "route" ? ["route", "show", "table", "all"] : [what]);
}

function queues(): string {
  return output("tc", ["qdisc"]);
}

function ruleset(): string {
  return output("nft", ["list", "ruleset"]);
}

function inside({ pid }: Observed, ...command: string[]): string {
  return output("nsenter", ["-t", String(pid), "-n", ...command]);
}

const [, , dataDir] = process.argv;
if (dataDir !== undefined) await serve(dataDir);
else await look();
