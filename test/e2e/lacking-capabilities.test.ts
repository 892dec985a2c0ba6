/** A server whose driver lacks capabilities refuses what needs them, with the reason, and does everything else. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const machine = new FakeMachine({
  images: ["service/base-image:latest"],
  without: ["freezing", "snapshots", "volumes"],
});
let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform({ driver: fakeDriver(machine) });
  const made = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "box" } } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
});
after(async () => {
  await platform?.stop();
  await machine.dispose();
});

const without = (what: string): string => `This server runs workloads with 'fake', which has no ${what}.`;

test("a volume is refused with the reason, and is not recorded", async () => {
  const refused = await platform.call("POST", "/volumes", { body: { metadata: { name: "vol" }, spec: { size: 10 } } });
  assert.deepEqual([refused.status, refused.body.message], [422, without("volumes")]);
  assert.equal((await platform.call("GET", "/volumes/vol")).status, 404);
});

test("a snapshot is refused with the reason", async () => {
  const refused = await platform.call("POST", "/sandboxes/box/snapshots", { body: {} });
  assert.deepEqual([refused.status, refused.body.message], [422, without("snapshots")]);
});

test("a sandbox that needs a scratch volume fails with the reason", async () => {
  const spec = { volumes: [{ name: "scratch", type: "ephemeral", mountPath: "/scratch" }] };
  const refused = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "with-scratch" }, spec } });
  assert.match(JSON.stringify(refused.body), /which has no volumes/);
  assert.equal((await platform.call("DELETE", "/sandboxes/with-scratch")).status, 200);
});

test("everything else works: drives, sandboxes and their end", async () => {
  const drive = await platform.call("POST", "/drives", { body: { metadata: { name: "shared" }, spec: {} } });
  assert.equal(drive.status, 200, JSON.stringify(drive.body));
  assert.equal((await platform.call("GET", "/sandboxes/box")).body.status, "DEPLOYED");
  assert.equal((await platform.call("DELETE", "/sandboxes/box")).status, 200);
});

test("the configuration says what the driver lacks", async () => {
  const { body } = await platform.call("GET", "/configuration");
  const words = [
    "freezing: sandboxes never go to standby",
    "sleep on disk: the memory of a sandbox in standby stays in use",
    "snapshots",
    "snapshots of memory: they need gVisor (install runsc) and sandboxes with isolation 'vm-like'",
    ...["volumes", "copies of volumes", "building of images"],
  ];
  const lacks = words.map(without);
  assert.deepEqual(body.regions[0].isolation.missing.slice(-lacks.length), lacks);
});
