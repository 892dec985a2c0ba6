/**
 * Run by every-workload.test.ts in network and mount namespaces of its own, with `nat` or `proxy`. Each workload asks the
 * world while it is built and while it runs, and everything that runs must be seen by the world in the same way.
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { deploySuite, isDeployed } from "../deploy-suite.ts";
import type { Answer } from "../platform.ts";
import { projectArchive } from "../project-archive.ts";
import { MACHINE, POOL, startWorld } from "./world.ts";

const [, , mode, folder = ""] = process.argv;
const hasNat = mode === "nat";
const SECRET = "sk-never-inside-4712";
const GATEWAY = { mode: "dedicated", gateway: "gw" };
const ROUTE = { destinations: ["api.test"], headers: { "x-key": "{{SECRET:k}}" }, secrets: { k: SECRET } };
const NETWORKS = {
  plain: {},
  dedicated: { egress: GATEWAY },
  ruled: { egress: GATEWAY, proxy: { allowedDomains: ["good.test", "api.test"], routing: [ROUTE] } },
};
type Setting = keyof typeof NETWORKS;

type Host = "good" | "bad" | "api" | "tcp";

/** What a probe saw of each host. */
interface Seen extends Record<Host, string> {
  /** The secret is in a variable of the program. */
  hasSecret: boolean;
}

/** The name is not resolved, or the proxy refuses the tunnel to it. */
const REFUSED = hasNat ? /^error .*getaddrinfo / : /^error .*\b403\b/;
/** Raw TCP of a workload without rules; it does not exist where the proxy is the only way out. */
const tcpFrom = (address: string): RegExp => (hasNat ? new RegExp(`^seen as ${address}$`) : /^error /);
const from = (address: string): RegExp => new RegExp(`^200 ${address} `);
const [EGRESS = ""] = POOL;
const EXPECTED: Record<Setting | "forbidden", Partial<Record<Host, RegExp>>> = {
  plain: { good: from(MACHINE), bad: from(MACHINE), tcp: tcpFrom(MACHINE) },
  dedicated: { good: from(EGRESS), bad: from(EGRESS), tcp: tcpFrom(EGRESS) },
  ruled: { good: from(EGRESS), bad: REFUSED, api: new RegExp(`^200 ${EGRESS} with the key$`), tcp: /^error / },
  forbidden: { good: REFUSED, tcp: /^error / },
};

const probe = readFileSync(join(import.meta.dirname, "probe.js"), "utf8");
const server = `
  const { probe } = require("./probe.js");
  const build = require("node:fs").readFileSync("built.json", "utf8");
  require("node:http").createServer(async (_, response) => response.end(JSON.stringify({ build: JSON.parse(build), run: await probe() })))
    .listen(process.env.PORT, process.env.HOST);`;
const task = `
  const { probe } = require("./probe.js");
  const build = JSON.parse(require("node:fs").readFileSync("built.json", "utf8"));
  probe().then((run) => { console.error(JSON.stringify({ build, run })); process.exit(3); });`;
const script = JSON.stringify({ scripts: { build: "node probe.js > built.json", start: "node index.js" } });
/** A step is built once for the same files, so each setting has a file of its own. */
const dockerfile = (command: string): string =>
  `FROM service/base-image\nWORKDIR /code\nCOPY . .\nRUN node probe.js > built.json\n${command}\n`;
const withScript = (program: string) => ({ "index.js": program, "package.json": script });
const withDockerfile = (program: string, command: string) => ({ "index.js": program, Dockerfile: dockerfile(command) });

const suite = deploySuite({ idle_after: "600", egress_pool: POOL.join(","), log_level: "warn" });
const { call, ask, create, reaches, until } = suite;

/** How each kind is made from code, and how it is asked. A build runs before anything else does. */
const KINDS: Record<string, { files: Record<string, string>; asked(name: string): Promise<string> }> = {
  agents: { files: withDockerfile(server, 'CMD ["node", "index.js"]'), asked: (name) => served(name, "agents") },
  functions: { files: withScript(server), asked: (name) => served(name, "functions") },
  applications: { files: withScript(server), asked: (name) => served(name, "applications") },
  jobs: { files: withScript(task), asked: ran },
  sandboxes: { files: withDockerfile(task, ""), asked: (name) => executed(name, "cd /code; node index.js") },
};

async function served(name: string, plural: string): Promise<string> {
  const answer = await ask(name, {}, plural);
  const text = await answer.text();
  assert.equal(answer.status, 200, `${plural} ${name}: ${text}`);
  return text;
}

async function ran(name: string): Promise<string> {
  const started = await call("POST", `/jobs/${name}/executions`, { body: { tasks: [{}] } });
  assert.equal(started.status, 200, JSON.stringify(started.body));
  const path = `/jobs/${name}/executions/${started.body.executionId}?inlineTasks=true`;
  const { tasks } = await until(
    async () => (await call("GET", path)).body,
    ({ metadata }: Answer["body"]) => metadata.completedAt !== undefined,
  );
  const { message } = tasks[0].conditions[0];
  return message.slice(message.indexOf("{"));
}

async function executed(name: string, command: string): Promise<string> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ command, waitForCompletion: true, timeout: 60 });
  const answer = await ask(`${name}/process`, { method: "POST", headers, body }, "sandboxes");
  const { stdout, stderr } = (await answer.json()) as Record<string, string>;
  return stdout || stderr || "";
}

async function make(plural: string, setting: Setting, files: Record<string, string>): Promise<void> {
  await create(setting, { ...files, "probe.js": probe, setting }, { network: NETWORKS[setting] }, plural);
  await reaches(setting, isDeployed, plural);
}

function check(what: string, seen: Seen, setting: keyof typeof EXPECTED): void {
  for (const [host, expected] of Object.entries(EXPECTED[setting]))
    assert.match(seen[host as Host], expected, `${what}, ${setting}: ${host} in ${JSON.stringify(seen)}`);
  assert.equal(seen.hasSecret, false, what);
}

async function look(plural: string, setting: Setting): Promise<void> {
  const { files, asked } = KINDS[plural] ?? assert.fail();
  await make(plural, setting, files);
  const { build, run } = JSON.parse(await asked(setting)) as Record<"build" | "run", Seen>;
  check(`the build of ${plural}`, build, setting);
  check(plural, run, setting);
}

/** An image has no rules of its own; a sandbox runs it and tells what its build saw. */
async function lookAtImage(name: string, setting: "plain" | "forbidden"): Promise<void> {
  const made = await call("POST", "/images?upload=true", { body: { name, resourceType: "sandbox" } });
  const archive = projectArchive({ "probe.js": probe, setting, Dockerfile: dockerfile("") });
  const sent = await fetch(made.headers.get("x-service-upload-url") ?? "", { method: "PUT", body: archive });
  assert.equal(sent.status, 200, await sent.text());
  await until(
    async () => (await call("GET", `/images/sandbox/${name}`)).body.metadata,
    ({ status }) => status === "DEPLOYED",
  );
  const body = {
    metadata: { name: `of-${name}` },
    spec: { runtime: { memory: 512, image: `sandbox/${name}:latest` } },
  };
  assert.equal((await call("POST", "/sandboxes", { body })).status, 200);
  check("the build of an image", JSON.parse(await executed(`of-${name}`, "cat /code/built.json")), setting);
}

/** A policy of the workspace holds for what runs already, and for what is built and run after it. */
async function lookAtPolicy(): Promise<void> {
  const network = { proxy: { forbiddenDomains: ["good.test"] } };
  const policy = { metadata: { name: "no-good" }, spec: { type: "network", network } };
  assert.equal((await call("POST", "/policies", { body: policy })).status, 200);
  // A change reaches a workload that runs within a moment.
  const refuses = async ([plural, { asked }]: (typeof all)[number]): Promise<void> =>
    check(
      plural,
      await until(
        async () => JSON.parse(await asked("ruled")).run as Seen,
        ({ good }) => REFUSED.test(good),
      ),
      "forbidden",
    );
  const all = Object.entries(KINDS);
  await Promise.all(all.map(refuses));
  await lookAtImage("later", "forbidden");
}

if (!hasNat)
  for (const path of spawnSync("which", ["-a", "nft"], { encoding: "utf8" }).stdout.split("\n").filter(Boolean))
    execFileSync("mount", ["--bind", "/dev/null", path]);
const world = await startWorld({ folder, secret: SECRET });
try {
  await suite.start();
  try {
    const gateways = "/vpcs/default/egressgateways";
    await call("POST", gateways, { body: { metadata: { name: "gw" } } });
    await call("POST", `${gateways}/gw/ips`, { body: { metadata: { name: "one" }, spec: { ipFamily: "IPv4" } } });
    await reaches("gw/ips/one", isDeployed, gateways.slice(1));
    await lookAtImage("early", "plain");
    const before = (await world.seen()).length;
    await Promise.all(Object.keys(KINDS).map((plural) => look(plural, "ruled")));
    assert.deepEqual(new Set((await world.seen()).slice(before)), new Set(["good.test", "api.test"]));
    // Without rules a workload with a network of its own goes around the proxy.
    if (hasNat) await Promise.all(Object.keys(KINDS).map((plural) => look(plural, "dedicated")));
    await lookAtPolicy();
  } finally {
    await suite.stop();
  }
} finally {
  await world[Symbol.asyncDispose]();
}
