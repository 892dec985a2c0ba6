/**
 * Run by the bench in a network namespace of its own: this process is the machine, and a second namespace is the outside,
 * joined by a veth. Prints one line of JSON.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { compileNetwork, type NetworkSpec } from "../../src/kinds/workload/network.ts";
import type { WorkloadRules } from "../../src/lib/network/egress/workload-rules.ts";
import type { Observed, WorkloadSpec } from "../../src/node/workload.ts";
import { LocalMachine } from "../../test/local/machine.ts";
import { run } from "../../test/local/run.ts";

const OUTSIDE = "203.0.113.2";
const BYTES = 128 * 2 ** 20;
const CONNECTS = 300;
const ROUNDS = 3;
/** More, since the difference is small. */
const RULE_ROUNDS = 7;
/** The egress proxy, as a workload finds it. */
const DOOR = "127.0.0.1:988";

// Port 7001 sends as much as it is asked for, port 7000 says hello, port 7003 is a bare proxy (CONNECT) to this machine.
const SERVERS = `const n = require("net"); n.createServer(s => { s.on("error", () => {}); s.once("data", d => { let left = Number(d); const c = Buffer.alloc(65536); const go = () => { while (left > 0) { left -= c.length; if (!s.write(c)) return s.once("drain", go); } s.end(); }; go(); }); }).listen(7001, "0.0.0.0"); require("http").createServer().on("connect", (q, c, h) => { const u = n.connect(q.url.split(":")[1], "127.0.0.1", () => { c.write("HTTP/1.1 200 OK\\r\\n\\r\\n"); if (h.length) u.write(h); u.pipe(c).pipe(u); }); u.on("error", () => c.destroy()); c.on("error", () => u.destroy()); }).listen(7003, "0.0.0.0"); n.createServer(s => s.on("error", () => {}).end("hello")).listen(7000, "0.0.0.0", () => console.log("up"));`;
// MB/s of one download (unless a third word says only the other), and the p50 of connections one after the other; through a proxy (CONNECT) when one is named.
const CLIENT = `const n = require("net"); const [host, via, only] = process.argv.slice(1); const open = (port, ready) => { if (!via) { const s = n.connect(port, host, () => ready(s)); return; } const [h, p] = via.split(":"); const s = n.connect(p, h, () => s.write("CONNECT " + host + ":" + port + " HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")); s.once("data", () => ready(s)); }; const connects = (left, times, done) => { const at = performance.now(); open(7000, s => { times.push(performance.now() - at); s.on("error", () => {}).destroy(); left > 1 ? connects(left - 1, times, done) : done(times.sort((a, b) => a - b)[times.length >> 1]); }); }; connects(${CONNECTS}, [], p50Ms => { if (only) return console.log(JSON.stringify({ p50Ms, mbPerS: 0 })); open(7001, s => { const at = performance.now(); let got = 0; s.on("data", d => { got += d.length; if (got >= ${BYTES}) { console.log(JSON.stringify({ p50Ms, mbPerS: ${BYTES} / 2 ** 20 / ((performance.now() - at) / 1000) })); process.exit(); } }); s.write("${BYTES}"); }); });`;

const ip = (commands: string[], pid?: number): void => {
  const [program = "ip", ...args] = [...(pid ? ["nsenter", "-t", String(pid), "-n"] : []), "ip", "-batch", "-"];
  execFileSync(program, args, { input: `${commands.join("\n")}\n` });
};

const outside = spawn("unshare", ["-n", process.execPath, "-e", SERVERS], { stdio: ["ignore", "pipe", "inherit"] });
process.once("exit", () => outside.kill());
await once(outside.stdout, "data");
const pid = Number(outside.pid);
ip([
  "link set lo up",
  `link add world0 type veth peer name host0 netns ${pid}`,
  "address add 203.0.113.1/24 dev world0",
]);
ip(["link set world0 up"]);
ip([`address add ${OUTSIDE}/24 dev host0`, "link set host0 up", "link set lo up"], pid);

let rules: WorkloadRules = compileNetwork({});
const listeners = new Set<(uid: string) => void>();
const machine = new LocalMachine();
const driver = await machine.open({
  poolSize: 0,
  egress: {
    rules: {
      of: async () => rules,
      onChange(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    allowed: () => true,
    resolve: async () => [OUTSIDE],
  },
});
const set = (network: NetworkSpec): void => {
  rules = compileNetwork(network);
  for (const listener of listeners) listener("box");
};

interface Measured {
  p50Ms: number;
  mbPerS: number;
}

const inBox = async (box: Observed, via = '""', only = ""): Promise<Measured> =>
  JSON.parse((await run(box, `node -e '${CLIENT}' ${OUTSIDE} ${via} ${only}`)).output) as Measured;
const direct = (): Measured =>
  JSON.parse(execFileSync(process.execPath, ["-e", CLIENT, OUTSIDE], { encoding: "utf8" })) as Measured;

const spec: WorkloadSpec = {
  ...{ uid: "box", name: "box", image: "berth/base-image:latest", env: {}, network: "outbound" },
  limits: { memoryMb: 512, cpus: 2 },
};
/** A thousand rules that do not hold and one that does. */
const MANY: NetworkSpec = {
  firewall: {
    rules: [
      ...Array.from({ length: 999 }, (_, n) => ({ action: "deny" as const, cidr: `198.51.${n >> 8}.${n & 255}/32` })),
      { action: "allow", cidr: `${OUTSIDE}/32` },
    ],
  },
};
try {
  const probe = await driver.probe();
  if (probe.outbound !== "nat") throw new Error(probe.missing.join(" "));
  const box = await driver.create(spec);
  const reaches = async (): Promise<boolean> =>
    (await run(box, `timeout 0.3 bash -c 'cat < /dev/tcp/${OUTSIDE}/7000' 2>/dev/null; true`)).output !== "";
  while (!(await reaches()));
  const rounds: Record<"direct" | "nat" | "bare" | "proxy", Measured[]> = { direct: [], nat: [], bare: [], proxy: [] };
  for (let round = 0; round < ROUNDS; round++) {
    rounds.direct.push(direct());
    rounds.nat.push(await inBox(box));
    rounds.bare.push(await inBox(box, `${OUTSIDE}:7003`));
    rounds.proxy.push(await inBox(box, DOOR));
  }
  // In turn, so that other work on the machine slows both down.
  const few: Measured[] = [];
  const many: Measured[] = [];
  for (let round = 0; round < RULE_ROUNDS; round++) {
    set({ firewall: { rules: [{ action: "allow", cidr: `${OUTSIDE}/32` }] } });
    few.push(await inBox(box, DOOR, "connects"));
    set(MANY);
    many.push(await inBox(box, DOOR, "connects"));
  }
  set({});
  while (!(await reaches()));
  // From the change of a rule to the begin of the first connection that the filter stopped.
  const effects: number[] = [];
  for (let round = 0; round < 5; round++) {
    const begun = performance.now();
    set({ firewall: { rules: [{ action: "deny", port: 7000 }] } });
    let tried = performance.now();
    while (await reaches()) tried = performance.now();
    effects.push(tried - begun);
    set({});
    while (!(await reaches()));
  }
  console.log(JSON.stringify({ rounds, few, many, effects }));
} finally {
  await driver.stop("kill");
  machine.dispose();
  outside.kill();
}
process.exit(0);
