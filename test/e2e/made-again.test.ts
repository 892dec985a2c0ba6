/** A name can be used again at once: whoever comes while its deletion still runs waits for that, and is not refused. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { startTestPlatform } from "../platform.ts";

describe("a sandbox that is made again while its deletion runs", () => {
  for (const [how, again] of Object.entries({
    "a create": ["POST", "/sandboxes"],
    "a createIfNotExist": ["POST", "/sandboxes?createIfNotExist=true"],
  }))
    test(`${how} waits for the deletion and then makes a new one`, async (t) => {
      const hold = new AbortController();
      const machine = new FakeMachine({
        images: ["service/base-image:latest"],
        beforeDestroy: async () => {
          if (!hold.signal.aborted) await once(hold.signal, "abort");
        },
      });
      t.after(() => machine.dispose());
      await using platform = await startTestPlatform({ driver: fakeDriver(machine) });
      t.after(() => hold.abort());
      const body = { metadata: { name: "again" }, spec: {} };
      const first = await platform.call("POST", "/sandboxes", { body });
      const deleting = platform.call("DELETE", "/sandboxes/again");
      await deletionBegun(platform);
      const [method, path] = again as [string, string];
      const making = platform.call(method, path, { body });
      hold.abort();
      const made = await making;
      assert.equal(made.status, 200, JSON.stringify(made.body));
      assert.equal((await deleting).status, 200);
      assert.notEqual(made.body.metadata.uid, first.body.metadata.uid);
    });

  test("a replacement is told that there is nothing to replace, so that `berth apply` makes it", async () => {
    await using platform = await startTestPlatform({});
    const body = { metadata: { name: "again" }, spec: {} };
    await platform.call("POST", "/sandboxes", { body });
    await platform.call("DELETE", "/sandboxes/again");
    assert.equal((await platform.call("GET", "/sandboxes/again")).body.status, "TERMINATED");
    assert.equal((await platform.call("PUT", "/sandboxes/again", { body })).status, 404);
  });
});

test("reading and deleting a deleted volume again tell the same: it was deleted, and when", async () => {
  await using platform = await startTestPlatform({});
  await platform.call("POST", "/volumes", { body: { metadata: { name: "notes" }, spec: { size: 64 } } });
  assert.equal((await platform.call("DELETE", "/volumes/notes")).status, 200);
  const { status, terminatedAt } = (await platform.call("GET", "/volumes/notes")).body;
  assert.ok(["DELETING", "TERMINATED"].includes(status));
  const body = { metadata: { name: "notes" }, spec: { size: 128 } };
  for (const again of [
    await platform.call("DELETE", "/volumes/notes"),
    await platform.call("PUT", "/volumes/notes", { body }),
  ]) {
    assert.equal(again.status, 404);
    assert.match(again.body.message, new RegExp(`^volume 'notes' was deleted at ${terminatedAt}\\.`));
  }
  assert.match((await platform.call("DELETE", "/volumes/never")).body.message, /'never' does not exist/);
});

async function deletionBegun({ call }: Awaited<ReturnType<typeof startTestPlatform>>): Promise<void> {
  while ((await call("GET", "/sandboxes/again")).body.status !== "DELETING");
}
