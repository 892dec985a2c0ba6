/** What agents remember: kept by the platform, apart for every workspace, agent and thread. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer, get, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { testDatabases } from "../databases.ts";
import { fakeDriver } from "../fake-driver.ts";
import { makeUser } from "../identities.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";
import { AGENT_IMAGE, type AgentWorld, agentWorld, until } from "./agent-world.ts";

const databases = await testDatabases();
after(() => databases.stop());
const PYTHON = spawnSync("python3", ["--version"]).status === 0;
const said = (...contents: string[]) => contents.map((content) => ({ role: "user", content }));

for (const database of databases.aboveStore) {
  describe(`threads on ${database.name}`, { skip: database.skip }, () => {
    let world: AgentWorld;
    let platform: TestPlatform;
    const uids: Record<string, string> = {};

    const call = (method: string, path: string, body?: unknown, key?: string): Promise<Answer> =>
      platform.call(method, path, { ...(body === undefined ? {} : { body }), ...(key === undefined ? {} : { key }) });
    const append = (thread: string, messages: object[], key?: string): Promise<Answer> =>
      call("POST", `/agents/one/threads/${encodeURIComponent(thread)}/messages`, { messages }, key);
    const contents = async (path: string, key?: string): Promise<string[]> =>
      (await call("GET", path, undefined, key)).body.messages.map(({ content }: { content: string }) => content);
    /** The environment that the platform gave to the running copy of an agent. */
    const envOf = async (name: string): Promise<Record<string, string>> => {
      const found = await until("a copy runs", () =>
        [...world.machine.workloads.values()].find((each) => each.spec.name === name),
      );
      return { ...found.spec.env, BL_API_URL: `${platform.url}/v0` };
    };
    const tokenOf = async (name: string): Promise<string> => {
      const { BL_API_URL, BL_CLIENT_CREDENTIALS } = await envOf(name);
      const answer = await fetch(`${BL_API_URL}/oauth/token`, {
        method: "POST",
        headers: { authorization: `Basic ${BL_CLIENT_CREDENTIALS}` },
        body: new URLSearchParams({ grant_type: "client_credentials" }),
      });
      return ((await answer.json()) as { access_token: string }).access_token;
    };

    before(async () => {
      world = await agentWorld();
      platform = await startTestPlatform({ ...(await database.migrated()), driver: fakeDriver(world.machine) });
      for (const name of ["one", "two"]) {
        const spec = { runtime: { image: AGENT_IMAGE, memory: 128 } };
        uids[name] = (await call("POST", "/agents", { metadata: { name }, spec })).body.metadata.uid;
        await until("it answers", async () => (await call("GET", `/agents/${name}`)).body.status === "DEPLOYED");
      }
    });
    after(async () => {
      await platform.stop();
      await world[Symbol.asyncDispose]();
    });

    test("messages come back in their order, the newest when not all are asked for", async () => {
      const empty = await call("GET", "/agents/one/threads/nothing");
      assert.deepEqual([empty.status, empty.body], [200, { id: "nothing", messageCount: 0, messages: [] }]);
      const id = "a/b ?%2F";
      assert.equal((await append(id, said("1", "2"))).status, 200);
      const added = await append(id, [{ role: "assistant", content: "3", tool: { x: [1] } }]);
      assert.deepEqual([added.body.id, added.body.messageCount], [id, 3]);
      assert.ok(Date.parse(added.body.expiresAt) > Date.now() + 29 * 24 * 3600 * 1000);
      const path = `/agents/one/threads/${encodeURIComponent(id)}`;
      assert.deepEqual(await contents(path), ["1", "2", "3"]);
      assert.deepEqual((await call("GET", `${path}?limit=1`)).body.messages, [
        { role: "assistant", content: "3", tool: { x: [1] } },
      ]);
      const listed = await call("GET", "/agents/one/threads?limit=1");
      assert.deepEqual([listed.body.data[0].id, listed.body.meta.total], [id, 1]);
      const stored = await platform.app.store.database.read.selectFrom("thread_messages").selectAll().execute();
      assert.ok(
        stored.every(({ sealed }) => !sealed.includes("content")),
        "sealed at rest",
      );
      assert.equal((await call("DELETE", path)).status, 200);
      assert.equal((await call("DELETE", path)).status, 404);
      assert.deepEqual(await contents(path), []);
    });

    test("workspaces, agents and threads are apart, and a workload has its own only", async () => {
      const [own, foreign] = [await tokenOf("one"), await tokenOf("two")];
      assert.equal((await append("t", said("mine"), own)).status, 200);
      assert.deepEqual(await contents("/agents/one/threads/t", own), ["mine"]);
      assert.deepEqual(await contents("/agents/one/threads/T", own), []);
      assert.deepEqual(await contents("/agents/two/threads/t", foreign), []);
      for (const answer of [
        await call("GET", "/agents/one/threads/t", undefined, foreign),
        await append("t", said("x"), foreign),
      ])
        assert.equal(answer.status, 403);
      assert.equal((await call("DELETE", "/agents/one/threads/t", undefined, own)).status, 403, "it has no such scope");
      const accountId = (await platform.app.store.people.listAccountsAcrossUsers())[0]?.id ?? "";
      const stranger = await makeUser(platform.app.store, accountId, "member", {});
      assert.ok((await call("GET", "/agents/one/threads/t", undefined, stranger.key)).status >= 400);
      const weak = await call("POST", "/api_keys", { name: "weak", scopes: ["agents:get"] });
      assert.equal((await call("GET", "/agents/one/threads/t", undefined, weak.body.apiKey)).status, 403);
      const reader = await call("POST", "/api_keys", { name: "reader", scopes: ["threads:get"] });
      assert.deepEqual(await contents("/agents/one/threads/t", reader.body.apiKey), ["mine"]);
      assert.equal((await append("t", said("x"), reader.body.apiKey)).status, 403);
    });

    test("everything is bounded", async () => {
      for (let n = 0; n < 11; n += 1)
        await append("long", said(...Array.from({ length: 100 }, (_, i) => `${n * 100 + i}`)));
      const long = await call("GET", "/agents/one/threads/long?limit=1000");
      assert.deepEqual([long.body.messageCount, long.body.messages[0].content], [1000, "100"]);
      for (let n = 0; n < 8; n += 1) await append("big", said(`${n}${"x".repeat(900_000)}`));
      const big = await contents("/agents/one/threads/big");
      assert.deepEqual([big.length < 8, big.at(-1)?.[0]], [true, "7"]);
      assert.equal((await append("x", said(...Array(101).fill("")))).status, 400);
      assert.equal((await append("x", [])).status, 400);
      assert.equal((await append("x", said("x".repeat(1024 * 1024)))).status, 413);
      assert.equal((await append("x".repeat(257), said("x"))).status, 400);
      // Clients that follow the standard never send these paths.
      for (const id of ["%2e", "%2e%2e", "%2E."])
        assert.equal(await rawStatus(`/v0/agents/one/threads/${id}`), 400, id);
    });

    /** The status of a GET whose path goes out as it is written. */
    const rawStatus = async (path: string): Promise<number | undefined> => {
      const headers = { authorization: `Bearer ${platform.apiKey}`, "x-service-workspace": "main" };
      const [answer] = (await once(get(platform.url, { path, headers }), "response")) as [IncomingMessage];
      answer.resume();
      return answer.statusCode;
    };

    test("a thread ends with its time and with its agent", async () => {
      const { store } = platform.app;
      await append("old", said("before"));
      await store.write(({ queries }) =>
        queries.updateTable("threads").set({ expires_at: Date.now() }).where("thread_id", "=", "old").execute(),
      );
      assert.deepEqual(await contents("/agents/one/threads/old"), []);
      await append("old", said("after"));
      assert.deepEqual(await contents("/agents/one/threads/old"), ["after"]);
      await store.write(({ queries }) => queries.updateTable("threads").set({ expires_at: Date.now() }).execute());
      while ((await store.threads.forgetExpired(2)) > 0);
      const left = () => store.database.read.selectFrom("thread_messages").select("seq").execute();
      assert.deepEqual(await left(), []);
      await call("POST", "/agents/two/threads/t/messages", { messages: said("x") });
      await call("DELETE", "/agents/two");
      assert.deepEqual(await left(), []);
    });

    test("the chat template remembers with the header and does not without", async () => {
      const asked: string[][] = [];
      const models = createServer(async (request, response) => {
        let text = "";
        for await (const chunk of request) text += chunk;
        asked.push(
          (JSON.parse(text) as { messages: { content: string }[] }).messages.slice(1).map(({ content }) => content),
        );
        response.end(`data: ${JSON.stringify({ choices: [{ delta: { content: "ok" } }] })}\n\ndata: [DONE]\n\n`);
      }).listen(0, "127.0.0.1");
      await once(models, "listening");
      after(() => models.close());
      const env = { ...(await envOf("one")), BL_RUN_URL: `http://127.0.0.1:${(models.address() as AddressInfo).port}` };
      const say = await startTemplate("agent-chat", [process.execPath, "index.js"], env);
      await say("I am Ada", "t1");
      await say("Who am I?", "t1");
      await say("Who am I?", "t2");
      await say("Who am I?");
      assert.deepEqual(asked, [["I am Ada"], ["I am Ada", "ok", "Who am I?"], ["Who am I?"], ["Who am I?"]]);
    });

    test("so does the one in Python", {
      skip: PYTHON ? false : "python3 is not installed; install it to run this test",
    }, async () => {
      const say = await startTemplate("python-agent", ["python3", "main.py"], await envOf("one"));
      assert.match(await say("a b", "p1"), /You wrote 2 words: a b"/);
      assert.match(await say("c", "p1"), /turn 2 of this conversation/);
      assert.doesNotMatch(await say("c"), /turn/);
    });
  });
}

/** Starts an example as a process of its own; returns how to talk to it. */
async function startTemplate(
  name: string,
  [program = "", ...args]: string[],
  env: Record<string, string>,
): Promise<(inputs: string, thread?: string) => Promise<string>> {
  const child = spawn(program, args, {
    cwd: join("examples", name),
    env: { PATH: process.env.PATH ?? "", PYTHONDONTWRITEBYTECODE: "1", ...env, HOST: "127.0.0.1", PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  after(() => child.kill());
  let output = "";
  let url: string | undefined;
  for await (const text of child.stdout) {
    output += text;
    url = /listening on (http:\S+)/.exec(output)?.[1];
    if (url) break;
  }
  return async (inputs, thread) => {
    const headers = thread === undefined ? {} : { "x-service-thread-id": thread };
    const answer = await fetch(url ?? assert.fail(output), {
      method: "POST",
      headers,
      body: JSON.stringify({ inputs }),
    });
    assert.equal(answer.status, 200, await answer.clone().text());
    return answer.text();
  };
}
