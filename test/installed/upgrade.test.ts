/** `berth upgrade` of an installation that is asked all the time: to versions that work, and to ones that do not. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { isRunning, type ProcessNote, runningNotes } from "../../src/lib/process-note.ts";
import { readUpgrade } from "../../src/operator/upgrade/record.ts";
import { eventually } from "../sandboxd-harness.ts";
import { spawnCommand } from "./command.ts";
import { installation, type RunningInstallation, startTree } from "./installation.ts";
import { workloadsSkip } from "./isolation.ts";
import { startTraffic, type Traffic } from "./steady-traffic.ts";
import { apiOf } from "./suite.ts";
import { BROKEN_AT_ONCE, BROKEN_LATE, makeTree, ONE_MIGRATION_MORE } from "./version-trees.ts";

/** Longer than any machine needs: how long an upgrade takes is not what is tested. */
const PATIENT = ["--drain", "300", "--limit", "300"];

const shared = await installation();
const folder = mkdtempSync(join(tmpdir(), "berth-upgrade-"));
const base = makeTree(shared.root, join(folder, "base"), "1.0.0");
const home = join(folder, "home");
const data = join(home, ".berth");
mkdirSync(home);
let installed: RunningInstallation;
let traffic: Traffic;
let first: ProcessNote;

before(async () => {
  installed = await startTree(base, home, () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  traffic = startTraffic(installed.url, installed.apiKey);
  first = server();
});
after(async () => {
  await traffic?.stop();
  await installed?.stop();
});

function server(): ProcessNote {
  const [note] = runningNotes(data);
  return note ?? assert.fail("no server is running");
}

const tree = (...[version, changes]: [string, Parameters<typeof makeTree>[3]?]): string =>
  makeTree(base, join(folder, version), version, changes);
/** A process each: the launcher chooses the version that runs. */
const berth = (...args: string[]) => spawnCommand(installed, args).ended;
const upgradeTo = (path: string) => berth("upgrade", "--to", path, ...PATIENT);

function migrations(): number {
  const database = new DatabaseSync(join(data, "berth.sqlite"), { readOnly: true });
  try {
    return Number(database.prepare("SELECT count(*) AS n FROM migrations").get()?.n);
  } finally {
    database.close();
  }
}

async function inSandbox(command: string): Promise<string> {
  const { status, body } = await apiOf(installed, "main").call("GET", "/sandboxes/kept");
  assert.equal(status, 200, JSON.stringify(body));
  const answer = await fetch(`${installed.url}/main/sandboxes/kept/process`, {
    method: "POST",
    headers: { authorization: `Bearer ${installed.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ command, waitForCompletion: true }),
  });
  const said = (await answer.json()) as { stdout: string };
  assert.equal(answer.status, 200, JSON.stringify(said));
  return said.stdout.trim();
}

let inside: string;
test("a sandbox runs before the first upgrade", { skip: workloadsSkip }, async () => {
  const { call } = apiOf(installed, "main");
  const made = await call("POST", "/sandboxes", {
    body: { metadata: { name: "kept" }, spec: { runtime: { memory: 256 } } },
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  inside = await inSandbox("echo written > /tmp/file; (sleep 86400 </dev/null >/dev/null 2>&1 & echo $!)");
  assert.match(inside, /^\d+$/);
});

test("a version that cannot even be loaded is refused, and the old one goes on", async () => {
  const { code, stderr } = await upgradeTo(tree("1.1.0", BROKEN_AT_ONCE));
  assert.equal(code, 5, stderr);
  assert.match(stderr, /1\.1\.0 was not taken into use: .*serves and has served all the time \(1\.0\.0\)/);
  assert.deepEqual(server(), first);
  await traffic.flows();
});

test("a version that fails after it has changed the database is taken back, and so is the database", async () => {
  const before = migrations();
  const { code, stderr } = await upgradeTo(tree("1.2.0", BROKEN_LATE));
  assert.equal(code, 5, stderr);
  assert.match(stderr, /1\.2\.0 was not taken into use: broken late, on purpose\. Now: the old version serves again/);
  assert.equal(migrations(), before);
  assert.deepEqual([server().pid, server().version], [first.pid, "1.0.0"]);
  await traffic.flows();
});

test("`berth upgrade` that is killed while it installs leaves the old version, and the next one is not in its way", async () => {
  const killed = spawnCommand(installed, ["upgrade", "--to", tree("1.3.0", ONE_MIGRATION_MORE), ...PATIENT]);
  await killed.printed(/installing 1\.3\.0/);
  killed.child.kill("SIGKILL");
  await killed.ended;
  assert.equal(server().version, "1.0.0");
  const { code, stdout, stderr } = await berth("upgrade", "--to", join(folder, "1.3.0"), "--check", ...PATIENT);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /1\.3\.0 can take over from 1\.0\.0: 1 change to the database/);
  assert.equal(server().version, "1.0.0");
});

test("the version that was checked is not installed again; it takes over the port, the data folder and the workloads", async () => {
  const before = migrations();
  const { code, stdout, stderr } = await upgradeTo(join(folder, "1.3.0"));
  assert.equal(code, 0, stderr);
  assert.match(stderr, /versions\/1\.3\.0-\d+ is installed already/);
  assert.doesNotMatch(stderr, /installing/);
  assert.match(stdout, /1\.3\.0 serves now, in place of 1\.0\.0 \(1 change to the database\)/);
  assert.equal(migrations(), before + 1);
  assert.deepEqual([server().version, server().url], ["1.3.0", first.url]);
  assert.ok(isRunning(first), "the process that was started stands for the server");
  await traffic.flows();
  assert.match((await berth("version")).stdout, /^berth 1\.3\.0 /);
});

test("`berth upgrade` that is killed while the server switches leaves a server of the new version", async () => {
  const killed = spawnCommand(installed, ["upgrade", "--to", tree("1.5.0", ONE_MIGRATION_MORE), ...PATIENT]);
  // A quick machine may have switched before the command looks again.
  await killed.printed(/switching: |serves now/);
  killed.child.kill("SIGKILL");
  await killed.ended;
  await eventually(async () => readUpgrade(data)?.state === "done");
  assert.equal(server().version, "1.5.0");
  await traffic.flows();
});

test("none of all requests has failed meanwhile", async () => {
  assert.deepEqual(await traffic.stop(), []);
});

test("the sandbox has kept its process and its file", { skip: workloadsSkip }, async () => {
  assert.equal(await inSandbox(`cat /tmp/file; kill -0 ${inside} && echo runs`), "written\nruns");
});

test("the end of the process that was started is the end of the server, and the next start runs the new version", async () => {
  const last = server();
  process.kill(first.pid, "SIGTERM");
  await eventually(async () => !isRunning(first));
  assert.ok(!isRunning(last));
  installed = await startTree(base, home, () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  assert.equal(server().version, "1.5.0");
  assert.match(
    installed.output(),
    /Berth 1\.5\.0 is ready\n {2}in \S+versions\/1\.5\.0-\d+, in place of 1\.0\.0, which `npm start` names/,
  );
  assert.match(readFileSync(join(base, "versions/current"), "utf8"), /^1\.5\.0-/);
});
