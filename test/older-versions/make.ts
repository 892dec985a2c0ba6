/**
 * Makes the fixtures of one version from a checkout of it: data folders as that version leaves them behind.
 *
 *   node test/older-versions/make.ts CHECKOUT test/fixtures/VERSION
 *
 * CHECKOUT has to be installed (`npm ci`), and this machine to be Linux, with PostgreSQL and pg_dump, and root: sandboxes,
 * deployed code and volumes are real. Version 0.1.0 ran a bundle of its sources after `npm ci`, which kept sign-ins
 * under an empty model name; people therefore sign in once with the bundle and once without.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { startServer } from "../berth-process.ts";
import { testDatabases } from "../databases.ts";
import { EVERY_KIND, SECRET } from "../every-kind.ts";
import { freePort } from "../free-port.ts";
import { program } from "../identity/program.ts";
import { type CallOptions, caller } from "../platform.ts";
import { projectArchive } from "../project-archive.ts";
import { eventually } from "../sandboxd-harness.ts";
import { lookAt } from "./shown.ts";

const PUBLIC_URL = "http://127.0.0.1:8080";
const API_KEY = "an-admin-key-of-the-first-version";
const PERSON = { email: "ada@example.test", password: "correct horse battery" };
/** Made again by whoever opens the folder, or of the process that had it. */
const LEFT_OUT = [
  "run",
  "berth.lock*",
  "berth.pid",
  "runtime/bin",
  "runtime/images",
  "runtime/tmp",
  "runtime/workloads",
  "runtime/tasks",
];

const [checkout = "", target = ""] = process.argv.slice(2).map((path) => resolve(path));
const work = mkdtempSync(join(tmpdir(), "berth-fixture-"));
const databases = await testDatabases();
try {
  mkdirSync(target, { recursive: true });
  for (const database of databases.all) {
    if (database.skip) throw new Error(database.skip);
    const { databaseUrl } = await database.fresh();
    await make(database.name, join(work, database.name), databaseUrl);
  }
} finally {
  await databases.stop();
  rmSync(work, { recursive: true, force: true });
}

async function make(name: string, dataDir: string, databaseUrl: string | null): Promise<void> {
  const running = await serve(dataDir, databaseUrl);
  const accountId = (await running.call("GET", "/accounts")).body[0].id;
  await must(running.call("POST", `/accounts/${accountId}/users`, { body: { email: PERSON.email } }));
  await must(
    running.call("PUT", `/accounts/${accountId}/users/${PERSON.email}/password`, {
      body: { newPassword: PERSON.password },
    }),
  );
  await must(running.call("POST", "/users", { body: { email: PERSON.email } }));
  const robot = await must(running.call("POST", "/service_accounts", { body: { name: "robot", role: "admin" } }));
  const broken = await signIn(running.url, robot);
  await running.stop();

  // What runs from here on are the sources.
  const bundles = globSync(join(checkout, "node_modules/.cache/berth/bundle-*"));
  assert.equal(bundles.length, 1, "run `npm ci` in the checkout first");
  const aside = join(work, "bundle");
  renameSync(bundles[0] ?? "", aside);
  try {
    const sources = await serve(dataDir, databaseUrl);
    try {
      const given = await signIn(sources.url, robot);
      const [invitation] = await must(sources.call("GET", "/invitations", { key: given.access }));
      await must(sources.call("POST", `/invitations/${invitation.invitationId}/accept`, { key: given.access }));
      await fill(sources);
      const key = await must(
        sources.call("POST", `/service_accounts/${robot.client_id}/api_keys`, { body: { name: "of the robot" } }),
      );
      await must(sources.call("POST", "/users", { body: { email: "invited@example.test", role: "admin" } }));
      const shown = await lookAt(sources.call);
      const metrics = `/accounts/${accountId}/metrics?groupBy=billing_dimension&startTime=2026-01-01T00:00:00Z&endTime=2030-01-01T00:00:00Z`;
      const used = async () => (await sources.call("GET", metrics)).body.data;
      await eventually(async () => (await used()).some(({ billingDimension }) => /sandbox/.test(billingDimension)));
      const expected = {
        madeAt: new Date().toISOString(),
        publicUrl: PUBLIC_URL,
        credentials: { apiKey: API_KEY, robot, robotKey: key.apiKey, person: PERSON, given, broken },
        secret: SECRET,
        shown,
        metrics: { path: metrics, data: await used() },
      };
      writeFileSync(join(target, `${name}.json.gz`), gzipSync(JSON.stringify(expected), { level: 9 }));
    } finally {
      await sources.stop();
    }
  } finally {
    renameSync(aside, bundles[0] ?? "");
  }
  if (databaseUrl) writeFileSync(join(dataDir, "dump.sql"), dump(databaseUrl));
  const excluded = LEFT_OUT.map((path) => `--exclude=./${path}`);
  execFileSync("tar", ["-cS", ...excluded, "-I", "gzip -9", "-f", join(target, `${name}.tar.gz`), "-C", dataDir, "."]);
}

async function serve(dataDir: string, databaseUrl: string | null) {
  const port = await freePort();
  const server = await startServer({
    root: checkout,
    dataDir,
    databaseUrl,
    args: ["--port", String(port), "--public-url", PUBLIC_URL, "--api-key", API_KEY, "--pool-size", "0"],
    env: { BERTH_ON_STOP: "kill" },
  });
  const url = `http://127.0.0.1:${port}`;
  const ask = caller(url);
  const call = (method: string, path: string, options: CallOptions = {}) =>
    ask(method, path, { key: API_KEY, workspace: "main", ...options });
  return { url, call, stop: server.stop };
}

type Serving = Awaited<ReturnType<typeof serve>>;

/** All that people and programs are given, as far as the version gives it. */
async function signIn(url: string, robot: { client_id: string; client_secret: string }) {
  const { post, tokens, browser, authorizeUrl, signIn: enter } = program(url, PUBLIC_URL);
  const { client_id, client_secret } = robot;
  const machine = await post("/oauth/token", { grant_type: "client_credentials", client_id, client_secret });
  const device = await post("/oauth/device/code", { client_id: "service", scope: "offline_access" });
  const visitor = browser();
  await enter(visitor, await visitor.visit(authorizeUrl("x".repeat(43))), PERSON);
  return {
    machine: machine.body.access_token,
    deviceCode: device.body.device_code,
    ...(await tokens(PERSON)),
    cookies: [...visitor.cookies].map(([name, { value }]) => [name, value]),
  };
}

async function fill({ url, call }: Serving): Promise<void> {
  for (const { collection, query = "", body, files } of EVERY_KIND) {
    const made = await call("POST", `${collection}${query}`, { body });
    assert.equal(made.status, 200, `${collection}: ${JSON.stringify(made.body)}`);
    if (!files) continue;
    const address = (made.headers.get("x-service-upload-url") ?? "").replace(PUBLIC_URL, url);
    assert.equal((await fetch(address, { method: "PUT", body: new Uint8Array(projectArchive(files)) })).status, 200);
  }
  for (const path of ["/agents/speaker", "/functions/tool", "/applications/site", "/jobs/batch", "/sandboxes/box"])
    await eventually(async () => (await call("GET", path)).body.status === "DEPLOYED");
  await eventually(async () => (await call("GET", "/sandboxes/box/schedule-executions")).body.data.length > 0);
  await eventually(async () => (await call("GET", "/sandboxes/box/snapshots")).body[0].status === "ready");

  const run = (path: string, body: object): Promise<Response> =>
    fetch(`${url}/main/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  await run("sandboxes/box/process", { command: "echo kept > /disk/kept.txt; sync", waitForCompletion: true });
  await run("models/parrot/chat/completions", { messages: [{ role: "user", content: "hello" }] });
  await run("agents/speaker", { inputs: "hello" });
  await must(
    call("POST", "/agents/speaker/threads/talk/messages", { body: { messages: [{ role: "user", content: "one" }] } }),
  );
  const { id } = await must(call("POST", "/jobs/batch/executions", { body: { tasks: [{}, {}] } }));
  const execution = `/jobs/batch/executions/${id}`;
  await eventually(async () => (await call("GET", execution)).body.status === "succeeded");
  await must(call("POST", "/workspaces", { body: { name: "second" } }));
  await must(call("POST", "/drives", { workspace: "second", body: { metadata: { name: "elsewhere" }, spec: {} } }));
}

/** Plain statements, which any client can send; newer versions of pg_dump add commands of psql. */
function dump(url: string): string {
  const options = ["--inserts", "--rows-per-insert=50", "--no-owner", "--no-privileges"];
  return execFileSync("pg_dump", [...options, url], { encoding: "utf8" }).replace(/^\\.*\n/gm, "");
}

async function must(answer: ReturnType<Serving["call"]>) {
  const { status, body } = await answer;
  assert.ok(status < 300, JSON.stringify(body));
  return body;
}
