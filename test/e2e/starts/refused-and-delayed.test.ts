/** Starts that cannot be: refused with the field where that is known, else answered with the reason at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeMachine, type FakeOptions, fakeDriver } from "../../fake-driver.ts";
import { startTestPlatform } from "../../platform.ts";
import { eventually } from "../../sandboxd-harness.ts";

const IMAGES = ["service/base-image:latest"];

test("a place where nothing can be mounted is refused with its field, before anything is made", async () => {
  await using platform = await startTestPlatform();
  const volume = { name: "scratch", type: "ephemeral", sizeMb: 16 };
  const refused = async (path: string, spec: Record<string, unknown>): Promise<string> => {
    const { status, body } = await platform.call("POST", path, { body: { metadata: { name: "refused" }, spec } });
    assert.equal(status, 400, JSON.stringify(body));
    return body.message;
  };
  for (const [mountPath, why] of [
    ["/", /cannot be \/: nothing can be mounted over \/proc/],
    ["//", /cannot be \/: /],
    ["/proc", /nothing can be mounted over \/proc/],
    ["/dev/shm/x", /nothing can be mounted over \/dev/],
    ["/sys/", /nothing can be mounted over \/sys/],
    ["/run/berth/host", /nothing can be mounted over \/run\/berth/],
    ["/run", /nothing can be mounted over \/run\/berth/],
    ["data", /must be an absolute path/],
    ["", /must be an absolute path/],
    ["/a/../proc", /must have no \. or \.\. in it/],
    ["/a/./b", /must have no \. or \.\. in it/],
    [`/${"x".repeat(256)}`, /no part of more than 255 bytes/],
  ] as const) {
    const message = await refused("/sandboxes", { volumes: [{ ...volume, mountPath }] });
    assert.match(message, /spec\.volumes\[0\]\.mountPath/);
    assert.match(message, why);
  }
  const twice = [
    { ...volume, mountPath: "/data" },
    { ...volume, name: "other", mountPath: "/data/" },
  ];
  assert.match(await refused("/sandboxes", { volumes: twice }), /spec\.volumes\[1\]\.mountPath.*\[0\]/);
  assert.match(await refused("/jobs", { volumes: twice }), /spec\.volumes\[1\]\.mountPath/);
  const drives = [{ name: "d", mountPath: "/proc" }];
  assert.match(await refused("/agents", { drives }), /spec\.drives\[0\]\.mountPath/);
  assert.equal((await platform.call("GET", "/sandboxes/refused")).status, 404);
  const slashes = { volumes: [{ ...volume, mountPath: "/data//deep/" }] };
  const made = await platform.call("POST", "/sandboxes", { body: { metadata: { name: "made" }, spec: slashes } });
  assert.deepEqual([made.status, made.body.spec.volumes[0].mountPath], [200, "/data//deep/"]);
});

test("a start that fails ends the waiting create with its reason, and goes on by itself", async (t) => {
  const options: FakeOptions = { images: IMAGES, failCreate: () => "the disk is on fire" };
  const machine = new FakeMachine(options);
  t.after(() => machine.dispose());
  await using platform = await startTestPlatform({ driver: fakeDriver(machine) });
  const { call } = platform;
  const body = { metadata: { name: "unlucky" }, spec: {} };
  const answer = await call("POST", "/sandboxes", { body });
  assert.equal(answer.status, 503, JSON.stringify(answer.body));
  assert.match(answer.body.message, /sandbox 'unlucky' is not ready\. It has not started: the disk is on fire/);
  const seen = await call("GET", "/sandboxes/unlucky");
  assert.equal(seen.body.status, "DEPLOYING");
  assert.equal(seen.body.events.at(-1).type, "delayed");
  delete options.failCreate;
  await eventually(async () => (await call("GET", "/sandboxes/unlucky")).body.status === "DEPLOYED");
});
