/** Code becomes running agents on this machine's own driver, reached through the gateway. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";
import { projectArchive } from "../project-archive.ts";
import { machineSkip } from "../sandbox-suite.ts";

const run = promisify(execFile);
const LOOK_MS = 50;
const PATIENCE_MS = 60_000;
const echo = { "index.js": readFileSync("examples/agent-echo/index.js", "utf8"), "package.json": '{"type":"module"}' };
const says = (word: string): Record<string, string> => ({
  "index.js": `
    const http = require("node:http");
    http.createServer((request, response) => {
      if (request.url === "/stream") {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write("data: first\\n\\n");
        request.on("data", () => response.end("data: last\\n\\n"));
      } else if (request.url === "/end") process.exit(3);
      else response.end(JSON.stringify({ word: "${word}", greeting: process.env.GREETING, name: process.env.BL_NAME }));
    }).listen(process.env.PORT, process.env.HOST, () => console.error("up"));`,
});

describe("deployed code on this machine", { skip: machineSkip }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-deploy-"));
  let platform: TestPlatform;
  const start = async (): Promise<void> => {
    platform = await startTestPlatform({ driver: "real", dataDir, config: { idle_after: "2" } });
  };
  before(start);
  after(async () => {
    for (const { metadata } of (await platform.call("GET", "/agents")).body.data)
      await platform.call("DELETE", `/agents/${metadata.name}`);
    await platform.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${platform.url}/main/agents/${path}`, {
      ...init,
      headers: { "x-service-authorization": `Bearer ${platform.apiKey}` },
    });
  const wordOf = async (name: string): Promise<string> => {
    const answer = await ask(name);
    assert.equal(answer.status, 200, await answer.clone().text());
    return ((await answer.json()) as { word: string }).word;
  };
  const send = async (made: Answer, files: Record<string, string>): Promise<Response> => {
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.equal(made.body.status, "UPLOADING");
    const url = made.headers.get("x-service-upload-url") ?? "";
    return fetch(url, { method: "PUT", body: projectArchive(files), headers: { "content-type": "application/gzip" } });
  };
  const create = async (name: string, files: Record<string, string>, spec: object = {}): Promise<void> => {
    const body = { metadata: { name }, spec: { runtime: { memory: 512 }, ...spec } };
    const sent = await send(await platform.call("POST", "/agents?upload=true", { body }), files);
    assert.equal(sent.status, 200, await sent.text());
  };
  const reaches = async (name: string, until: (agent: Answer["body"]) => boolean): Promise<Answer["body"]> => {
    const giveUp = Date.now() + PATIENCE_MS;
    for (;;) {
      const { body } = await platform.call("GET", `/agents/${name}`);
      if (until(body)) return body;
      if (Date.now() > giveUp) throw new Error(`still ${body.status}: ${JSON.stringify(body.events)}`);
      await pause(LOOK_MS);
    }
  };
  const deployed = ({ status }: Answer["body"]): boolean => status === "DEPLOYED";
  const copiesOf = async (name: string): Promise<number> => {
    const agent = await platform.app.store.resources.get({ workspace: "main", kind: "agent", parent: "" }, name);
    return ((agent?.state.copies ?? []) as unknown[]).length;
  };
  const untilCopies = async (name: string, count: number): Promise<void> => {
    const giveUp = Date.now() + PATIENCE_MS;
    while ((await copiesOf(name)) !== count) {
      if (Date.now() > giveUp) throw new Error(`still ${await copiesOf(name)} copies`);
      await pause(LOOK_MS);
    }
  };

  test("an archive becomes an agent that answers and streams", async () => {
    await create("echo", echo);
    const { events } = await reaches("echo", deployed);
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
    await reaches("caller", deployed);
    const { credentials, token, ...seen } = (await (await ask("caller")).json()) as Record<string, unknown> & {
      credentials: Record<string, string>;
      token: string;
    };
    assert.deepEqual(seen, { agents: 200, policies: 403, audit: 403 });
    const [{ actor }] = (await platform.call("GET", "/audit?action=signIn")).body.data;
    assert.deepEqual([actor.type, actor.name], ["workload", "agent caller"]);
    await platform.call("DELETE", "/agents/caller");
    assert.equal((await platform.call("GET", "/agents", { key: token, workspace: "main" })).status, 401);
    const body = JSON.stringify({ grant_type: "client_credentials" });
    const late = await fetch(`${platform.url}/oauth/token`, { method: "POST", headers: credentials, body });
    assert.equal(late.status, 401);
  });

  test("an upload address works once, and only as it was made", async () => {
    const body = { metadata: { name: "once" }, spec: { runtime: { memory: 512 } } };
    const made = await platform.call("POST", "/agents?upload=true", { body });
    assert.equal((await send(made, says("one"))).status, 200);
    assert.equal((await send(made, says("two"))).status, 403);
    const forged = `${made.headers.get("x-service-upload-url")?.slice(0, -4)}AAAA`;
    assert.equal((await fetch(forged, { method: "PUT", body: "x" })).status, 403);
    await reaches("once", deployed);
    assert.equal(await wordOf("once"), "one");
  });

  test("a new revision takes over without a dropped request, and the old one can come back", async () => {
    await create("rolling", says("one"), { runtime: { memory: 512, envs: [{ name: "GREETING", value: "hi" }] } });
    await reaches("rolling", deployed);
    const stream = await ask("rolling/stream", { method: "GET" });
    assert.equal(stream.status, 200);
    const { body: current } = await platform.call("GET", "/agents/rolling");
    const again = await platform.call("PUT", "/agents/rolling?upload=true", { body: current });
    assert.equal(await wordOf("rolling"), "one");
    assert.equal((await send(again, says("two"))).status, 200);
    const heard: string[] = [];
    while (heard.at(-1) !== "two") {
      heard.push(await wordOf("rolling"));
      assert.ok(heard.length < 10_000);
    }
    assert.deepEqual([...new Set(heard)], ["one", "two"]);
    await stream.body?.cancel();
    const { body: newest } = await platform.call("GET", "/agents/rolling");
    const spec = { ...newest.spec, revision: { active: "1" } };
    await platform.call("PUT", "/agents/rolling", { body: { ...newest, spec } });
    await reaches("rolling", deployed);
    assert.equal(await wordOf("rolling"), "one");
  });

  test("an idle one is let go, and a request brings it back, even after a restart of the server", async () => {
    await untilCopies("echo", 0);
    assert.equal((await ask("echo")).status, 200);
    assert.equal(await copiesOf("echo"), 1);
    await platform.stop();
    await start();
    assert.equal((await ask("echo")).status, 200);
  });

  test("code that ends before it listens fails with its last words; the one before goes on", async () => {
    const { body: current } = await platform.call("GET", "/agents/once");
    const broken = await platform.call("PUT", "/agents/once?upload=true", { body: current });
    await send(broken, { "index.js": 'console.error("no database"); process.exit(7)' });
    const { events } = await reaches("once", ({ status }) => status === "FAILED");
    assert.match(events.at(-1).message, /exit code 7.*no database/s);
    assert.equal(await wordOf("once"), "one");
  });

  test("a crash is told and the next request finds a new copy", async () => {
    await create("fragile", says("here"));
    await reaches("fragile", deployed);
    await (await ask("fragile/end")).text();
    const { events } = await reaches("fragile", (agent) => agent.events.at(-1).type === "crashed");
    assert.match(events.at(-1).message, /exit code 3/);
    assert.equal(await wordOf("fragile"), "here");
  });

  test("an archive that cannot be built says why", async () => {
    await create("empty", { "README.md": "nothing to run" });
    const { events } = await reaches("empty", ({ status }) => status === "FAILED");
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
    await reaches("made", deployed);
    assert.equal(await wordOf("made"), "made");
    await create("unmade", project('console.error("no compiler"); process.exit(2)'));
    const { events } = await reaches("unmade", ({ status }) => status === "FAILED");
    assert.match(events.at(-1).message, /build failed: exit code 2.*no compiler/s);
  });

  test("berth deploy brings a folder to an address", async () => {
    const env = { ...process.env, BERTH_URL: platform.url, BERTH_API_KEY: platform.apiKey, BERTH_WORKSPACE: "main" };
    const args = ["src/main.ts", "deploy", "examples/agent-echo", "--name", "from-cli"];
    const { stdout, stderr } = await run(process.execPath, args, { env });
    assert.equal(stdout.trim(), `${platform.url}/main/agents/from-cli`);
    assert.match(stderr, /deployed: Revision 1 answers/);
    assert.equal((await ask("from-cli")).status, 200);
  });

  test("switched off it runs nothing, deleted it leaves nothing", async () => {
    const { body: current } = await platform.call("GET", "/agents/fragile");
    await platform.call("PUT", "/agents/fragile", { body: { ...current, spec: { ...current.spec, enabled: false } } });
    await untilCopies("fragile", 0);
    await platform.call("PUT", "/agents/fragile", { body: current });
    await reaches("fragile", deployed);
    assert.equal(await wordOf("fragile"), "here");
    await platform.call("DELETE", "/agents/fragile");
    assert.equal((await platform.call("GET", "/agents/fragile")).status, 404);
    assert.equal((await ask("fragile")).status, 404);
  });
});
