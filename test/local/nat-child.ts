/** Run by nat.test.ts in a network namespace of its own: this is the machine, and a second namespace is the internet. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import type { Observed, WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine, run } from "./machine.ts";

const ip = (commands: string[], pid?: number): void => {
  const enter = pid === undefined ? [] : ["nsenter", "-t", String(pid), "-n"];
  const [program = "ip", ...args] = [...enter, "ip", "-batch", "-"];
  execFileSync(program, args, { input: `${commands.join("\n")}\n` });
};

// Answers every connection with the address it came from, on any address of that namespace.
const server = `require("net").createServer(s => s.end("seen as " + s.remoteAddress)).listen(7000, "0.0.0.0", () => console.log("up"))`;
const internet = spawn("unshare", ["-n", process.execPath, "-e", server], { stdio: ["ignore", "pipe", "inherit"] });
process.once("exit", () => internet.kill());
await once(internet.stdout, "data");
const pid = Number(internet.pid);
ip([
  "link set lo up",
  `link add world0 type veth peer name host0 netns ${pid}`,
  "address add 203.0.113.1/24 dev world0",
]);
ip(["link set world0 up", "route add 10.9.9.9/32 via 203.0.113.2", "route add 169.254.169.254/32 via 203.0.113.2"]);
const addresses = ["203.0.113.2/24", "10.9.9.9/32", "169.254.169.254/32"];
ip([...addresses.map((address) => `address add ${address} dev host0`), "link set host0 up", "link set lo up"], pid);

const machine = new LocalMachine();
const driver = await machine.open({ poolSize: 1 });
try {
  await look();
} finally {
  await driver.stop("kill");
  internet.kill();
}
assert.doesNotMatch(execFileSync("ip", ["link"], { encoding: "utf8" }), /-br|-v\d/);
machine.dispose();

async function look(): Promise<void> {
  const probe = await driver.probe();
  assert.equal(probe.outbound, "nat", probe.missing.join(" "));
  await driver.stocked();
  const one = await driver.create(spec("one"));
  const two = await driver.create(spec("two"));
  const closed = await driver.create({ ...spec("closed"), network: "closed" });

  assert.equal(await reach(one, "203.0.113.2", 50), "seen as 203.0.113.1", "out, behind the machine's address");
  for (const host of ["10.9.9.9", "169.254.169.254"]) {
    const near = execFileSync("bash", ["-c", `cat < /dev/tcp/${host}/7000`], { encoding: "utf8" });
    assert.match(near, /seen/, "the machine itself reaches it");
    assert.equal(await reach(one, host), "", host);
  }
  assert.equal(await reach(closed, "203.0.113.2"), "");
  assert.equal((await run(one, "env | grep -ci proxy")).output.trim(), "0");

  await run(two, `node -e 'require("net").createServer(s => s.end("hi")).listen(7000)' > /dev/null 2>&1 &`);
  const address = (await run(two, "hostname -I")).output.trim();
  assert.match(address, /^198\.18\./);
  assert.equal(await reach(one, address), "", "a neighbour");
  const local = spawn(process.execPath, ["-e", server], { stdio: ["ignore", "pipe", "inherit"] });
  process.once("exit", () => local.kill());
  await once(local.stdout, "data");
  for (const host of ["198.18.0.1", "203.0.113.1"]) assert.equal(await reach(one, host), "", `the machine at ${host}`);
  const stats = await driver.stats("one");
  assert.ok((stats.sentBytes ?? 0) > 0 && (stats.receivedBytes ?? 0) > 0);
  local.kill();
}

function spec(uid: string): WorkloadSpec {
  const limits = { memoryMb: 256, cpus: 1 };
  return { uid, name: "box", image: "berth/base-image:latest", env: {}, limits, network: "outbound" };
}

/** What is dropped on the way is waited for in vain. */
async function reach(from: Observed, host: string, waitS = 2): Promise<string> {
  return (await run(from, `timeout ${waitS} bash -c 'cat < /dev/tcp/${host}/7000' 2>/dev/null; true`)).output;
}
