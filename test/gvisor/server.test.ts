/** The isolation that a sandbox or a policy asks for, through the API. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { localDriverMissing } from "../local/machine.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { RUNSC_MISSING, testRunsc } from "./binary.ts";

const runsc = localDriverMissing ? null : testRunsc();

const create = (platform: TestPlatform, name: string, runtime: Record<string, unknown> = {}) =>
  platform.call("POST", "/sandboxes", { body: { metadata: { name }, spec: { runtime } } });

const policy = (platform: TestPlatform, spec: Record<string, unknown>) =>
  platform.call("POST", "/policies", { body: { metadata: { name: "hard" }, spec: { type: "isolation", ...spec } } });

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
  for (const name of ["usual", "asked", "ruled", "slept"]) await platform.call("DELETE", `/sandboxes/${name}`);
});
