import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type TestDatabase, type TestPlace, testDatabases } from "../../../test/databases.ts";
import { addWorkspace, draftOf, openTestStore } from "../../../test/store.ts";
import { type Link, linksOf } from "../../contract/references.ts";
import type { Store } from "../store.ts";
import type { Resource } from "./resource.ts";

test("references are found by path, with the place they stand at", () => {
  const document = {
    spec: {
      policies: ["a", "", "b"],
      volumes: [{ name: "v" }, { name: "scratch", type: "ephemeral" }, null, { other: 1 }],
      image: "x",
    },
  };
  const found = linksOf(document, [
    { path: "spec.policies[]", kind: "policy" },
    { path: "spec.volumes[type!=ephemeral].name", kind: "volume", exclusive: true },
    { path: "spec.image", kind: "image" },
    { path: "spec.image[]", kind: "never" },
    { path: "spec.nothing.here", kind: "never" },
  ]);
  assert.deepEqual(
    found.map(({ field, kind, name, exclusive }) => [field, kind, name, exclusive]),
    [
      ["spec.policies[0]", "policy", "a", false],
      ["spec.policies[2]", "policy", "b", false],
      ["spec.volumes[0].name", "volume", "v", true],
      ["spec.image", "image", "x", false],
    ],
  );
});

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.all)
  describe(`links on ${database.name}`, { skip: database.skip }, () => suite(database));

function suite(database: TestDatabase): void {
  let store: Store;
  let place: TestPlace;
  before(async () => {
    place = await database.migrated();
    store = await openTestStore(place);
    await addWorkspace(store);
  });
  after(async () => {
    await store.close();
    place.remove();
  });

  const link = (kind: string, name: string, more: Partial<Link> = {}): Link => ({
    field: `spec.${kind}`,
    kind,
    name,
    exclusive: false,
    to: "resource",
    ...more,
  });

  /** Writes a resource together with its links, as the API does. */
  const make = (kind: string, name: string, links: Link[] = []): Promise<Resource> =>
    store.write(async (tx) => {
      const { resource } = await store.resources.insert(tx, draftOf(kind, name));
      await store.links.replace(tx, resource, links);
      return resource;
    });

  const drop = (resource: Resource): Promise<void> =>
    store.write(async (tx) => {
      await store.resources.modify(tx, "main", resource.uid, () => ({ deleted: true }));
      await store.links.requireUnused(tx, resource);
      await store.resources.remove(tx, "main", resource.uid);
    });

  test("what is named must exist, and nothing is written otherwise", async () => {
    await assert.rejects(
      make("user", "u0", [link("policy", "missing")]),
      /spec\.policy: policy 'missing' does not exist/,
    );
    assert.equal(await store.resources.get({ workspace: "main", kind: "user", parent: "" }, "u0"), null);
  });

  test("what is named stays until nobody names it", async () => {
    const policy = await make("policy", "p1");
    const user = await make("user", "u1", [link("policy", "p1")]);
    await assert.rejects(drop(policy), /policy 'p1' is in use by user 'u1'/);
    assert.deepEqual(await store.links.countsOf("main", "policy", ["p1"]), new Map([["p1", { user: 1 }]]));
    await store.write((tx) => store.links.replace(tx, user, []));
    await drop(policy);
  });

  test("a record that is retired or removed lets go", async () => {
    const policy = await make("policy", "p2");
    const [first, second] = [
      await make("user", "u2", [link("policy", "p2")]),
      await make("user", "u3", [link("policy", "p2")]),
    ];
    await store.resources.update("main", first.uid, () => ({ retire: true }));
    await store.resources.delete("main", second.uid);
    assert.equal((await store.links.usersOf("main", "policy", ["p2"])).size, 0);
    await drop(policy);
  });

  test("of many who want something to themselves one has it", async () => {
    await make("volume", "v1");
    const attempts = await Promise.allSettled(
      Array.from({ length: 12 }, (_, n) => make("user", `x${n}`, [link("volume", "v1", { exclusive: true })])),
    );
    assert.equal(attempts.filter(({ status }) => status === "fulfilled").length, 1);
    for (const attempt of attempts)
      if (attempt.status === "rejected") assert.match(attempt.reason.message, /volume 'v1' is in use by user 'x\d+'/);
    assert.equal((await store.links.usersOf("main", "volume", ["v1"])).get("v1")?.length, 1);
  });

  test("either the user is first and the thing stays, or the thing is gone and the user is refused", async () => {
    const things = await Promise.all(Array.from({ length: 10 }, (_, n) => make("policy", `r${n}`)));
    await Promise.allSettled(
      things.flatMap((thing, n) => [make("user", `r${n}`, [link("policy", thing.name)]), drop(thing)]),
    );
    for (const thing of things) {
      const scope = (kind: string) => ({ workspace: "main", kind, parent: "" });
      const user = await store.resources.get(scope("user"), thing.name);
      const there = await store.resources.get(scope("policy"), thing.name);
      assert.equal(user === null, there === null);
    }
  });

  test("a word of the platform is claimed across workspaces", async () => {
    const claim = link("host", "a.example.test", { exclusive: true, to: "claim" });
    const holder = await make("preview", "w1", [claim]);
    assert.equal((await store.claims.holderOf("host", "a.example.test"))?.uid, holder.uid);
    await assert.rejects(make("preview", "w2", [claim]), /is in use by preview 'w1'/);
    await store.write((tx) => store.links.replace(tx, holder, [claim]));
  });
}
