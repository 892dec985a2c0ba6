/** The isolation that a sandbox or a policy asks for, through the API. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { localDriverMissing } from "../local/machine.ts";
import { LONG } from "../long.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { RUNSC_MISSING, testRunsc } from "./binary.ts";

const runsc = localDriverMissing ? null : testRunsc();

const create = (platform: TestPlatform, name: string, runtime: Record<string, unknown> = {}) =>
  platform.call("POST", "/sandboxes", { body: { metadata: { name }, spec: { runtime } } });

const policy = (platform: TestPlatform, spec: Record<string, unknown>) =>
  platform.call("POST", "/policies", { body: { metadata: { name: "hard" }, spec: { type: "isolation", ...spec } } });

/** Copies of the sandbox `asked`, of which a program counts in memory. */
async function forksWithMemory(platform: TestPlatform, headers: Record<string, string>): Promise<void> {
  const ask = async (name: string, command: string): Promise<string> => {
    const { body } = await platform.call("GET", `/sandboxes/${name}`);
    const sent = JSON.stringify({ command, waitForCompletion: true });
    const ran = await fetch(`${body.metadata.url}/process`, { method: "POST", headers, body: sent });
    return ((await ran.json()) as { logs: string }).logs;
  };
  const post = (path: string, body: object) => platform.call("POST", `/sandboxes/${path}`, { body });
  const refused = await post("usual/snapshots", { memory: true });
  assert.equal(refused.status, 422);
  assert.match(JSON.stringify(refused.body), /needs isolation 'vm-like'.*has 'mapped'/);
  await ask("asked", "echo first > /note; (sleep 1000 >/dev/null 2>&1 &)");
  const preview = await post("asked/previews", { metadata: { name: "web" }, spec: { port: 3000, public: false } });
  const expiresAt = new Date(Date.now() + 3600_000).toISOString();
  const token = await post("asked/previews/web/tokens", { metadata: {}, spec: { expiresAt } });
  assert.equal(token.status, 200, JSON.stringify(token.body));
  const { body: taken } = await post("asked/snapshots", { memory: true, name: "instant" });
  assert.deepEqual([taken.status, taken.memory, taken.name], ["ready", true, "instant"], JSON.stringify(taken));
  await ask("asked", "echo second > /note");
  const forked = await post("asked/fork", { targetName: "copy", snapshotId: taken.id, copies: 2 });
  const copies = ["copy-1", "copy-2"].map((name) => ({ name, status: "DEPLOYED" }));
  assert.deepEqual(forked.body, { name: "copy", type: "sandbox", snapshotId: taken.id, copies });
  for (const { name } of copies) {
    assert.equal(await ask(name, "cat /note; pgrep -c sleep; echo $BL_NAME"), `first\n1\n${name}\n`);
    assert.deepEqual((await platform.call("GET", `/sandboxes/${name}/previews`)).body, []);
    await post(`${name}/previews`, { metadata: { name: "web" }, spec: { port: 3000, public: false } });
    const { body: own } = await platform.call("GET", `/sandboxes/${name}/previews/web`);
    assert.notEqual(own.spec.url, preview.body.spec.url);
    const entered = await fetch(`${own.spec.url}/?bl_preview_token=${token.body.spec.token}`);
    assert.equal(entered.status, 401, "a token of the source opens nothing of the copy");
  }
  assert.equal((await post("asked/fork", { targetName: "copy", copies: 2, withMemory: true })).status, 409);
  assert.equal((await post("asked/fork", { targetName: "x", copies: 101 })).status, 400);
  const files = await post("asked/snapshots", {});
  assert.equal(
    (await post("asked/fork", { targetName: "x", snapshotId: files.body.id, withMemory: true })).status,
    422,
  );
  assert.equal((await post("asked/fork", { targetName: "now", withMemory: true })).status, 200);
  assert.equal(await ask("now", "cat /note; pgrep -c sleep"), "second\n1\n");
  const restored = await platform.call("POST", `/sandboxes/asked/snapshots/${taken.id}/restore`, { body: {} });
  assert.deepEqual(restored.body, { name: "asked", snapshotId: taken.id });
  assert.equal(await ask("asked", "cat /note; pgrep -c sleep"), "first\n1\n");
  for (const name of ["copy-1", "copy-2", "now"]) await platform.call("DELETE", `/sandboxes/${name}`);
}

test("a server that does not offer the isolation refuses the record, and says what it offers", async () => {
  await using platform = await startTestPlatform();
  await platform.call("GET", "/configuration"); // answers once the driver is open
  const asked = await create(platform, "asked", { isolation: "vm-like" });
  assert.equal(asked.status, 422);
  assert.match(JSON.stringify(asked.body), /'vm-like' is asked for, and this server offers 'none'/);
  const lifecycle = { hibernateAfter: "1h" };
  const slept = await platform.call("POST", "/sandboxes", {
    body: { metadata: { name: "slept" }, spec: { lifecycle } },
  });
  assert.equal(slept.status, 422);
  assert.match(JSON.stringify(slept.body), /hibernateAfter needs isolation 'vm-like'/);
  await create(platform, "plain");
  const memory = await platform.call("POST", "/sandboxes/plain/snapshots", { body: { memory: true } });
  assert.equal(memory.status, 422);
  assert.match(JSON.stringify(memory.body), /has no snapshots of memory: they need gVisor \(install runsc\)/);
  assert.equal((await create(platform, "misspelt", { isolation: "vm" })).status, 400);
  assert.equal((await policy(platform, {})).status, 400);
  assert.equal((await policy(platform, { isolation: "mapped", resourceTypes: ["sandbox"] })).status, 200);
  const ruled = await create(platform, "ruled");
  assert.equal(ruled.status, 422);
  assert.match(JSON.stringify(ruled.body), /'mapped' is asked for/);
  assert.equal((await platform.call("DELETE", "/policies/hard")).status, 200);
  assert.equal((await create(platform, "free")).status, 200);
});

test("sandboxes run in gVisor where they or a policy ask for it", { skip: runsc ? false : RUNSC_MISSING }, async () => {
  await using platform = await startTestPlatform({
    driver: "real",
    config: { runsc: runsc ?? "", standby_after: "1" },
  });
  const { body: configuration } = await platform.call("GET", "/configuration");
  assert.deepEqual(configuration.regions[0].isolation.grades, ["vm-like", "mapped"]);
  const grade = async (name: string) => (await platform.call("GET", `/sandboxes/${name}`)).body.isolation;
  assert.equal((await create(platform, "usual")).status, 200);
  assert.equal(await grade("usual"), "mapped");
  assert.equal((await create(platform, "asked", { isolation: "vm-like" })).status, 200);
  assert.equal(await grade("asked"), "vm-like");
  assert.equal((await policy(platform, { isolation: "vm-like" })).status, 200);
  const { body: ruled } = await create(platform, "ruled");
  assert.equal(await grade("ruled"), "vm-like");
  const headers = { authorization: `Bearer ${platform.apiKey}`, "content-type": "application/json" };
  const run = await fetch(`${ruled.metadata.url}/process`, {
    method: "POST",
    headers,
    body: JSON.stringify({ command: "dmesg | head -n 1", waitForCompletion: true }),
  });
  assert.match(((await run.json()) as { logs: string }).logs, /gVisor/);
  const lifecycle = { hibernateAfter: "1s" };
  const body = { metadata: { name: "slept" }, spec: { lifecycle } };
  const { body: slept } = await platform.call("POST", "/sandboxes", { body });
  const write = await fetch(`${slept.metadata.url}/process`, {
    method: "POST",
    headers,
    body: JSON.stringify({ command: "sleep 600", name: "kept" }),
  });
  assert.equal(write.status, 200);
  const events = async (): Promise<string[]> =>
    (await platform.call("GET", "/sandboxes/slept")).body.events.map(({ type }: { type: string }) => type);
  while (!(await events()).includes("hibernated")) await new Promise((resolve) => setTimeout(resolve, 100));
  const kept = await fetch(`${slept.metadata.url}/process/kept`, { headers });
  assert.equal(((await kept.json()) as { status: string }).status, "running");
  await forksWithMemory(platform, headers);
  for (const name of ["usual", "asked", "ruled", "slept"]) await platform.call("DELETE", `/sandboxes/${name}`);
});

test("a sandbox goes to disk by itself when memory of the machine is short, and comes back for a request", {
  skip: runsc ? (LONG ? false : "runs with npm run test:long") : RUNSC_MISSING,
}, async () => {
  // More than any machine has, so that it is always short.
  const config = { runsc: runsc ?? "", standby_after: "600", memory_free_min: "1000000000" };
  await using platform = await startTestPlatform({ driver: "real", config });
  const { body: box } = await create(platform, "box", { isolation: "vm-like", memory: 512 });
  const told = async (): Promise<string[]> =>
    (await platform.call("GET", "/sandboxes/box")).body.events.map((event: { type: string; message: string }) =>
      [event.type, event.message].join(": "),
    );
  while (!(await told()).some((each) => each.startsWith("hibernated")))
    await new Promise((resolve) => setTimeout(resolve, 100));
  const said = (await told()).join(" ");
  assert.match(said, /Asleep early, because memory of the machine is short/);
  assert.match(said, /lies on disk, because memory of the machine was short/);
  const headers = { authorization: `Bearer ${platform.apiKey}` };
  assert.equal((await fetch(`${box.metadata.url}/health`, { headers })).status, 200);
  await platform.call("DELETE", "/sandboxes/box");
});
