/** Each member of `spec.revision` acts, is refused, or is told to do nothing. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readWarnings } from "../../../src/contract/warnings.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../../platform.ts";

let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform();
});
after(() => platform.stop());

const put = (name: string, spec: object): Promise<Answer> =>
  platform.call("PUT", `/agents/${name}`, { body: { metadata: { name }, spec } });
const warnings = ({ headers }: Answer): string[] => readWarnings(headers.get("warning"));
const image = (tag: number) => ({ runtime: { image: `x:${tag}` } });

test("a choice that cannot act is told in a warning and an event", async () => {
  const made = await platform.call("POST", "/agents", {
    body: {
      metadata: { name: "idle" },
      spec: { ...image(1), revision: { canary: "7", canaryPercent: 5, traffic: 40 } },
    },
  });
  assert.deepEqual(made.body.spec.revision, { canaryPercent: 5, traffic: 40 });
  const [left = "", first = ""] = warnings(made);
  assert.match(left, /spec\.revision\.canary '7' is left out/);
  assert.match(first, /spec\.revision\.traffic .* from the second revision on/);
  const texts = made.body.events.map(({ message }) => message);
  assert.ok(texts.includes(left) && texts.includes(first), JSON.stringify(texts));

  const same = await put("idle", made.body.spec);
  assert.deepEqual(warnings(same), [], "what is written back is told once");
  const alone = await put("idle", { ...image(1), revision: { canaryPercent: 9 } });
  assert.match(warnings(alone).join(), /canaryPercent is kept and has no effect/);
  assert.match(alone.body.events.at(-1).message, /canaryPercent is kept and has no effect/);
  const itself = await put("idle", { ...image(1), revision: { canary: "1", canaryPercent: 9 } });
  assert.match(warnings(itself).join(), /canary is kept and has no effect: it names the active/);
  const later = await put("idle", { ...image(1), revision: { traffic: 20 } });
  assert.match(warnings(later).join(), /traffic is kept and acts with the next revision/);
});

test("another share for the newest revision moves the canary, and the whole promotes it", async () => {
  const { store } = platform.app;
  await platform.call("POST", "/agents", { body: { metadata: { name: "shared" }, spec: image(1) } });
  const found = await store.resources.get({ workspace: "main", kind: "agent", parent: "" }, "shared");
  const { workspace = "", uid = "" } = found ?? {};
  // What the loop writes once the first revision answers.
  await store.resources.update(workspace, uid, ({ state }) => ({ state: { ...state, activeRevision: "1" } }));
  const choice = async (revision: object, tag = 2) =>
    (await put("shared", { ...image(tag), revision })).body.spec.revision;
  const canary = await choice({ traffic: 10 });
  assert.deepEqual(canary, { active: "1", canary: "2", canaryPercent: 10, traffic: 10 });
  const more = await choice({ ...canary, traffic: 25 });
  assert.deepEqual(more, { ...canary, canaryPercent: 25, traffic: 25 });
  const torn = await put("shared", { ...image(2), revision: { ...canary, canaryPercent: 60, traffic: 70 } });
  assert.match(torn.body.message, /^spec\.revision\.traffic: is 70, and canaryPercent, which says the same, 60/);
  assert.deepEqual(await choice({ ...more, traffic: 100 }), { traffic: 100 });
});

test("what the platform answers itself has no second revision", async () => {
  const served = { runtime: { image: "service/mcp-memory:latest" } };
  const write = (name: string, revision?: object): Promise<Answer> =>
    platform.call("PUT", `/functions/${name}`, { body: { metadata: { name }, spec: { ...served, revision } } });
  const body = { metadata: { name: "memory" }, spec: served };
  assert.equal((await platform.call("POST", "/functions", { body })).status, 200);
  for (const [member, revision] of [
    ["traffic", { traffic: 40 }],
    ["canary", { active: "1", canary: "1", canaryPercent: 5 }],
  ] as const) {
    const refused = await write("memory", revision);
    assert.equal(refused.status, 400, member);
    assert.match(refused.body.message, new RegExp(`^spec\\.revision\\.${member}: the platform answers`));
  }
  const first = { metadata: { name: "other" }, spec: { ...served, revision: { traffic: 40 } } };
  assert.equal((await platform.call("POST", "/functions", { body: first })).status, 400);
  assert.equal((await write("memory", { traffic: 100 })).status, 200);
  assert.equal((await write("memory", { active: "1" })).status, 200, "the newest revision is the one that answers");
  await platform.call("PUT", "/functions/memory", {
    body: { metadata: { name: "memory" }, spec: { ...served, public: true } },
  });
  const older = await write("memory", { active: "1" });
  assert.equal(older.status, 400);
  assert.match(older.body.message, /^spec\.revision\.active: the platform answers .* no other revision can answer/);
});

test("a volume cannot be shared by two revisions", async () => {
  await platform.call("POST", "/volumes", { body: { metadata: { name: "disk" }, spec: { size: 16 } } });
  const volumes = [{ name: "disk", mountPath: "/disk" }];
  await platform.call("POST", "/agents", { body: { metadata: { name: "held" }, spec: { ...image(1), volumes } } });
  for (const revision of [{ traffic: 50 }, { active: "1", canary: "1", canaryPercent: 5 }]) {
    const refused = await put("held", { ...image(2), volumes, revision });
    assert.equal(refused.status, 400);
    assert.match(refused.body.message, /^spec\.revision\.(traffic|canary): a workload with a volume runs one copy/);
  }
});
