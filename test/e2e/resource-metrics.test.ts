/** Metrics of a resource over time: requests and use are there after a restart, for those who may see the resource. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeUser } from "../identities.ts";
import { startTestPlatform } from "../platform.ts";

interface Point {
  requests: number;
  errors: number;
  p95Ms: number | null;
  memoryBytes: number | null;
}

test("requests and memory of a resource can be read over time, also after a restart", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-test-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 }));
  {
    // What an edge process forwards counts as what the server does.
    await using first = await startTestPlatform({ dataDir, config: { edge_processes: "1" } });
    const model = { metadata: { name: "asked" }, spec: { runtime: { type: "mock", model: "mock" } } };
    assert.equal((await first.call("POST", "/models", { body: model })).status, 200);
    const box = { metadata: { name: "box" }, spec: { runtime: { memory: 256 } } };
    assert.equal((await first.call("POST", "/sandboxes", { body: box })).status, 200);
    const ask = (address: string, body: object) =>
      fetch(`${first.url}/main/${address}`, {
        method: "POST",
        headers: { authorization: `Bearer ${first.apiKey}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const message = { messages: [{ role: "user", content: "hello" }] };
    for (let count = 0; count < 3; count += 1)
      assert.equal((await ask("models/asked/v1/chat/completions", message)).status, 200);
    // Refused before any model: nobody fills the store with names that do not exist.
    assert.equal((await ask("models/nobody/v1/chat/completions", message)).status, 404);
    assert.equal((await ask("sandboxes/box/process", { command: "true", waitForCompletion: true })).status, 200);
  }
  await using again = await startTestPlatform({ dataDir });
  const { store } = again.app;
  const query = (words: string, key?: string) =>
    again.call<{ step: number; points: Point[] }>("GET", `/observability/metrics?${words}`, {
      workspace: "main",
      ...(key ? { key } : {}),
    });
  const sum = (points: Point[], member: "requests" | "errors"): number =>
    points.reduce((total, point) => total + point[member], 0);

  const asked = await query("kind=model&name=asked");
  assert.equal(asked.status, 200, JSON.stringify(asked.body));
  assert.equal(asked.body.step, 60);
  assert.equal(sum(asked.body.points, "requests"), 3);
  assert.equal(sum(asked.body.points, "errors"), 0);
  assert.ok(asked.body.points.some(({ p95Ms }) => p95Ms !== null && p95Ms > 0));
  const box = await query("kind=sandboxes&name=box&step=3600");
  assert.equal(sum(box.body.points, "requests"), 1);
  assert.ok(box.body.points.some(({ memoryBytes }) => memoryBytes !== null));
  const day = await query(`kind=model&name=asked&start=${new Date(Date.now() - 86_000_000).toISOString()}`);
  assert.ok(day.body.points.length <= 121, String(day.body.points.length));

  assert.equal((await query("kind=model&name=nobody")).status, 404);
  assert.equal((await query("kind=model&name=asked&step=61")).status, 400);
  assert.equal((await query("kind=model&name=asked&start=2026-01-01T00:00:00")).status, 400);
  const accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
  const narrow = await makeUser(store, accountId, "member", { main: "member" }, ["workspaces:get", "drives:list"]);
  assert.equal((await query("kind=model&name=asked", narrow.key)).status, 403);
});
