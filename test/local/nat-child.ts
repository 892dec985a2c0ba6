/** Run by nat.test.ts in a network namespace of its own: this is the machine, and a second namespace is the internet. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { compileNetwork } from "../../src/kinds/workload/network.ts";
import type { Observed, WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine, run } from "./machine.ts";

const ip = (commands: string[], pid?: number): void => {
  const enter = pid === undefined ? [] : ["nsenter", "-t", String(pid), "-n"];
  const [program = "ip", ...args] = [...enter, "ip", "-batch", "-"];
  execFileSync(program, args, { input: `${commands.join("\n")}\n` });
};

// Answers every connection with the address it came from, on any address of that namespace.
const WEB = `require("http").createServer((q, s) => s.end("web for " + q.headers.host)).listen(80, "0.0.0.0"); require("net").createServer(s => s.once("data", () => s.end("no TLS here"))).listen(443, "0.0.0.0");`;
const server = `require("net").createServer(s => s.end("seen as " + s.remoteAddress)).listen(7000, "0.0.0.0", () => console.log("up"))`;
const internet = spawn("unshare", ["-n", process.execPath, "-e", WEB + server], {
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
ip(["link set world0 up", "route add 10.9.9.9/32 via 203.0.113.2", "route add 169.254.169.254/32 via 203.0.113.2"]);
const addresses = ["203.0.113.2/24", "10.9.9.9/32", "169.254.169.254/32"];
ip([...addresses.map((address) => `address add ${address} dev host0`), "link set host0 up", "link set lo up"], pid);

const machine = new LocalMachine();
const OPEN = compileNetwork({});
const RULED = compileNetwork({ proxy: { allowedDomains: ["good.test"] } });
const ruled = new Set(["ruled"]);
const listeners = new Set<(uid: string) => void>();
const refused: string[] = [];
const counted: string[] = [];
const driver = await machine.open({
  poolSize: 1,
  egress: {
    rules: {
      of: async (uid) => (ruled.has(uid) ? RULED : OPEN),
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
assert.doesNotMatch(execFileSync("ip", ["link"], { encoding: "utf8" }), /-br|-v\d/);
machine.dispose();

async function look(): Promise<void> {
  const probe = await driver.probe();
  assert.equal(probe.outbound, "nat", probe.missing.join(" "));
  await driver.stocked();
  const one = await driver.create(spec("one"));
  const two = await driver.create(spec("two"));
  const closed = await driver.create({ ...spec("closed"), network: "closed" });

  while ((await reach(one, "203.0.113.2", 2)) === ""); // its rules are read in a moment
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
  await lookAtRules(one);
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

  // A change holds for what runs, in both directions.
  ruled.add("one");
  for (const listener of listeners) listener("one");
  while ((await reach(one, "203.0.113.2")) !== "");
  assert.match(await web(one, "bad.test"), /403 .*firewall_blocked/is);
  ruled.delete("one");
  for (const listener of listeners) listener("one");
  while ((await reach(one, "203.0.113.2", 50)) === "");
}

function spec(uid: string): WorkloadSpec {
  const limits = { memoryMb: 256, cpus: 1 };
  return { uid, name: "box", image: "berth/base-image:latest", env: {}, limits, network: "outbound" };
}

/** What is dropped on the way is waited for in vain. */
async function reach(from: Observed, host: string, waitS = 2): Promise<string> {
  return (await run(from, `timeout ${waitS} bash -c 'cat < /dev/tcp/${host}/7000' 2>/dev/null; true`)).output;
}
