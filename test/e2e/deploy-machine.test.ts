/** Code becomes running agents on this machine's own driver, reached through the gateway. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { deploySuite, hasFailed, isDeployed, says } from "../deploy-suite.ts";
import { machineSkip } from "../sandbox-suite.ts";

const echo = { "index.js": readFileSync("examples/agent-echo/index.js", "utf8"), "package.json": '{"type":"module"}' };

describe("deployed code on this machine", { skip: machineSkip }, () => {
  const suite = deploySuite();
  const { call, ask, send, create, update, change, reaches, wordOf, untilCopies } = suite;
  before(suite.start);
  after(suite.stop);

  test("an archive becomes an agent that answers and streams", async () => {
    await create("echo", echo);
    const { events } = await reaches("echo", isDeployed);
    const steps = events.map(({ type }: { type: string }) => type);
    assert.deepEqual(steps, ["created", "uploading", "uploaded", "built", "deployed"]);
    const answer = await ask("echo", { method: "POST", body: '{"inputs":"hello"}' });
    assert.deepEqual(await answer.json(), { output: "You said: hello" });
  });

  test("code calls the platform as itself, with no more than it needs, until it ends", async () => {
    await create("caller", {
      "index.js": `
        const http = require("node:http");
        const { BL_API_URL, BL_CLIENT_CREDENTIALS, BL_WORKSPACE } = process.env;
        const credentials = { authorization: "Basic " + BL_CLIENT_CREDENTIALS, "content-type": "application/json" };
        http.createServer(async (request, response) => {
          const body = JSON.stringify({ grant_type: "client_credentials" });
          const token = await (await fetch(BL_API_URL + "/oauth/token", { method: "POST", headers: credentials, body })).json();
          const headers = { "x-service-authorization": "Bearer " + token.access_token, "x-service-workspace": BL_WORKSPACE };
          const statusOf = async (path) => (await fetch(BL_API_URL + path, { headers })).status;
          const seen = { agents: await statusOf("/agents"), policies: await statusOf("/policies"), audit: await statusOf("/audit") };
          response.end(JSON.stringify({ ...seen, credentials, token: token.access_token }));
        }).listen(process.env.PORT, process.env.HOST);`,
    });
    await reaches("caller", isDeployed);
    const { credentials, token, ...seen } = (await (await ask("caller")).json()) as Record<string, unknown> & {
      credentials: Record<string, string>;
      token: string;
    };
    assert.deepEqual(seen, { agents: 200, policies: 403, audit: 403 });
    const { actor } = (await call("GET", "/audit?action=signIn")).body.data[0];
    assert.deepEqual([actor.type, actor.name], ["workload", "agent caller"]);
    await call("DELETE", "/agents/caller");
    assert.equal((await call("GET", "/agents", { key: token, workspace: "main" })).status, 401);
    const body = JSON.stringify({ grant_type: "client_credentials" });
    const late = await fetch(`${suite.platform().url}/oauth/token`, { method: "POST", headers: credentials, body });
    assert.equal(late.status, 401);
  });

  test("an upload address works once, and only as it was made", async () => {
    const body = { metadata: { name: "once" }, spec: { runtime: { memory: 512 } } };
    const made = await call("POST", "/agents?upload=true", { body });
    assert.equal((await send(made, says("one"))).status, 200);
    assert.equal((await send(made, says("two"))).status, 403);
    const forged = `${made.headers.get("x-service-upload-url")?.slice(0, -4)}AAAA`;
    assert.equal((await fetch(forged, { method: "PUT", body: "x" })).status, 403);
    await reaches("once", isDeployed);
    assert.equal(await wordOf("once"), "one");
  });

  test("a new revision takes over without a dropped request, and the old one can come back", async () => {
    await create("rolling", says("one"), { runtime: { memory: 512, envs: [{ name: "GREETING", value: "hi" }] } });
    await reaches("rolling", isDeployed);
    const stream = await ask("rolling/stream", { method: "GET" });
    assert.equal(stream.status, 200);
    const { body: current } = await call("GET", "/agents/rolling");
    const again = await call("PUT", "/agents/rolling?upload=true", { body: current });
    assert.equal(await wordOf("rolling"), "one");
    assert.equal((await send(again, says("two"))).status, 200);
    const heard: string[] = [];
    while (heard.at(-1) !== "two") {
      heard.push(await wordOf("rolling"));
      assert.ok(heard.length < 10_000);
    }
    assert.deepEqual([...new Set(heard)], ["one", "two"]);
    await stream.body?.cancel();
    await change("rolling", { revision: { active: "1" } });
    await reaches("rolling", isDeployed);
    assert.equal(await wordOf("rolling"), "one");
  });

  test("an idle one is let go, and a request brings it back, even after a restart of the server", async () => {
    await untilCopies("echo", 0);
    assert.equal((await ask("echo")).status, 200);
    assert.equal((await suite.copies("echo")).length, 1);
    await suite.platform().stop();
    await suite.start();
    assert.equal((await ask("echo")).status, 200);
  });

  test("code that ends before it listens fails with its last words; the one before goes on", async () => {
    await update("once", { "index.js": 'console.error("no database"); process.exit(7)' });
    const { events } = await reaches("once", hasFailed);
    assert.match(events.at(-1).message, /exit code 7.*no database/s);
    assert.equal(await wordOf("once"), "one");
  });

  test("a crash is told and the next request finds a new copy", async () => {
    await create("fragile", says("here"));
    await reaches("fragile", isDeployed);
    await (await ask("fragile/end")).text();
    const { events } = await reaches("fragile", (agent) => agent.events.at(-1).type === "crashed");
    assert.match(events.at(-1).message, /exit code 3/);
    assert.equal(await wordOf("fragile"), "here");
  });

  test("an archive that cannot be built says why", async () => {
    await create("empty", { "README.md": "nothing to run" });
    const { events } = await reaches("empty", hasFailed);
    assert.match(events.at(-1).message, /nothing to start/);
    const answer = await ask("empty");
    assert.ok(answer.status >= 500);
  });

  test("a build script runs in a workload of its own, and its failure is told with its words", async () => {
    const make = `require("node:fs").writeFileSync("index.js", ${JSON.stringify(says("made")["index.js"])})`;
    const project = (script: string) => ({
      "package.json": JSON.stringify({ scripts: { build: "node make.js", start: "node index.js" } }),
      "make.js": script,
    });
    await create("made", project(make));
    await reaches("made", isDeployed);
    assert.equal(await wordOf("made"), "made");
    await create("unmade", project('console.error("no compiler"); process.exit(2)'));
    const { events } = await reaches("unmade", hasFailed);
    assert.match(events.at(-1).message, /build failed: exit code 2.*no compiler/s);
  });

  test("berth deploy brings a folder to an address", async () => {
    const { stdout, stderr } = await suite.berth(["deploy", "examples/agent-echo", "--name", "from-cli"]);
    assert.equal(stdout.trim(), `${suite.platform().url}/main/agents/from-cli`);
    assert.match(stderr, /deployed: Revision 1 answers/);
    assert.equal((await ask("from-cli")).status, 200);
  });

  test("switched off it runs nothing, deleted it leaves nothing", async () => {
    await change("fragile", { enabled: false });
    await untilCopies("fragile", 0);
    await change("fragile", { enabled: true });
    await reaches("fragile", isDeployed);
    assert.equal(await wordOf("fragile"), "here");
    await call("DELETE", "/agents/fragile");
    assert.equal((await call("GET", "/agents/fragile")).status, 404);
    assert.equal((await ask("fragile")).status, 404);
  });
});
