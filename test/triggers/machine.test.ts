/** A deployed agent on this machine's own driver: it remembers through the platform's door, and wakes for what was kept. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";
import { projectArchive } from "../project-archive.ts";
import { machineSkip } from "../sandbox-suite.ts";
import { until } from "./agent-world.ts";

const FOLDER = "examples/agent-chat";
const files = Object.fromEntries(readdirSync(FOLDER).map((name) => [name, readFileSync(join(FOLDER, name), "utf8")]));

describe("an agent on this machine", { skip: machineSkip }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-triggers-"));
  let platform: TestPlatform;
  const call = (method: string, path: string, body?: object): Promise<Answer> =>
    platform.call(method, path, body === undefined ? {} : { body });
  const say = async (inputs: string, thread?: string, query = ""): Promise<string> => {
    const headers = {
      "x-service-authorization": `Bearer ${platform.apiKey}`,
      ...(thread === undefined ? {} : { "x-service-thread-id": thread }),
    };
    const body = JSON.stringify({ inputs });
    const answer = await fetch(`${platform.url}/main/agents/chat${query}`, { method: "POST", headers, body });
    assert.equal(answer.status, 200, await answer.clone().text());
    return answer.text();
  };
  const thread = async (id: string): Promise<string[]> =>
    (await call("GET", `/agents/chat/threads/${id}`)).body.messages.map(({ content }: { content: string }) => content);

  before(async () => {
    platform = await startTestPlatform({ driver: "real", dataDir, config: { idle_after: "2" } });
    await call("POST", "/models", { metadata: { name: "chat" }, spec: { runtime: { type: "mock", model: "echo" } } });
    const made = await call("POST", "/agents?upload=true", {
      metadata: { name: "chat" },
      spec: { runtime: { memory: 512 } },
    });
    const url = made.headers.get("x-service-upload-url") ?? assert.fail(JSON.stringify(made.body));
    const sent = await fetch(url, {
      method: "PUT",
      body: projectArchive(files),
      headers: { "content-type": "application/gzip" },
    });
    assert.equal(sent.status, 200, await sent.text());
    await until("it is deployed", async () => (await call("GET", "/agents/chat")).body.status === "DEPLOYED");
  });
  after(async () => {
    await call("DELETE", "/agents/chat");
    await platform.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test("remembers with the header, not without, and is started for a request that was kept", async () => {
    assert.equal(await say("hello", "t1"), "hello");
    await say("again", "t1");
    await say("nobody remembers");
    assert.deepEqual(await thread("t1"), ["hello", "hello", "again", "again"]);
    const copies = async (): Promise<number> => {
      const agent = await platform.app.store.resources.get({ workspace: "main", kind: "agent", parent: "" }, "chat");
      return ((agent?.state.copies ?? []) as unknown[]).length;
    };
    await until("it has gone to sleep", async () => (await copies()) === 0);
    assert.equal(await say("later", "t1", "?async=true"), '{"success":true}');
    await until("it has woken and remembers", async () => (await thread("t1")).length === 6);
    assert.deepEqual((await call("GET", "/agents/chat/threads")).body.meta.total, 1);
  });
});
