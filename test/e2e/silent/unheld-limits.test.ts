/** Limits that the machine does not hold are said in each sandbox and volume. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FakeMachine, fakeDriver } from "../../fake-driver.ts";
import { startTestPlatform, type TestPlatform } from "../../platform.ts";

const machine = new FakeMachine({ images: ["service/base-image:latest"], limits: ["pids"] });
let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform({ driver: fakeDriver(machine) });
});
after(async () => {
  await platform.stop();
  await machine.dispose();
});

test("a sandbox says which limits do not hold", async () => {
  const made = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "box" } } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const { body } = await platform.call("GET", "/sandboxes/box");
  const [error] = body.errors;
  assert.equal(error.code, "LIMITS_NOT_ENFORCED");
  assert.equal(error.fatal, false);
  assert.match(error.message, /does not hold limits of memory, cpu /);
  const spec = { runtime: { storageMb: 512 } };
  const sized = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "sized" }, spec } });
  assert.match(sized.body.errors[0].message, /does not hold limits of memory, cpu, storage /);
});

test("a volume says that its size does not hold, before and after it is made", async () => {
  const made = await platform.call("POST", "/volumes", { body: { metadata: { name: "vol" }, spec: { size: 10 } } });
  assert.equal(made.body.sized, false);
  const spec = { volumes: [{ name: "vol", mountPath: "/data" }] };
  const box = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "with-vol" }, spec } });
  assert.equal(box.status, 200, JSON.stringify(box.body));
  assert.equal((await platform.call("GET", "/volumes/vol")).body.sized, false);
  const listed = await platform.call("GET", "/volumes");
  assert.equal(listed.body.data[0].sized, false);
  const { warning } = Object.fromEntries((await platform.call("PUT", "/volumes/vol", { body: made.body })).headers);
  assert.equal(warning, undefined, "what is read can be written back");
});
