import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { type TestDatabase, testDatabases } from "../../../test/databases.ts";
import { addWorkspace, draftOf, openTestStore } from "../../../test/store.ts";
import { hostLabelOf } from "../../contract/held-words.ts";
import { uuidv7 } from "../../lib/ids.ts";
import type { Database } from "../database/database.ts";
import { MIGRATIONS, migrate } from "../database/migrations/index.ts";
import type { ResourceRow } from "../database/schema.ts";
import { openDatabase } from "../store.ts";

const databases = await testDatabases();
after(() => databases.stop());
for (const database of databases.all)
  describe(`held words on ${database.name}`, { skip: database.skip }, () => suite(database));

function suite(kind: TestDatabase): void {
  test("what was made before words were held keeps its addresses, the eldest first", async (t) => {
    const place = await kind.fresh();
    t.after(() => place.remove());
    const at = MIGRATIONS.findIndex(({ name }) => name === "held-words");
    const before = await openDatabase({ ...place, onError: assert.ifError });
    const made: Record<string, string> = {};
    try {
      await migrate(before, 1, MIGRATIONS.slice(0, at));
      for (const [workspace, account] of [
        ["main", "a"],
        ["evil-main", "b"],
        ["x", "a"],
        ["x-agent-y", "b"],
      ] as const)
        await insertWorkspace(before, workspace, account);
      const insert = async (
        of: string,
        workspace: string,
        name: string,
        more: { parent?: string; spec?: object } = {},
      ) => {
        made[`${workspace}/${name}`] = await insertResource(before, of, workspace, name, more);
        return made[`${workspace}/${name}`] ?? "";
      };
      const parent = await insert("sandbox", "main", "api-evil");
      await insert("sandbox", "evil-main", "api");
      await insert("agent", "x", "y-agent-z");
      await insert("agent", "x-agent-y", "z");
      await insert("preview", "main", "web", { parent, spec: { port: 1 } });
      const prefixed = await insert("preview", "main", "shop", { parent, spec: { port: 1, prefixUrl: "shop" } });
      await before.write(({ queries }) =>
        queries
          .insertInto("resource_links")
          .values({
            ...{ uid: prefixed, workspace: "main", kind: "preview", name: "shop", exclusive: 1 },
            ...{ target_workspace: "", target_kind: "preview-prefix", target: "shop-main" },
          })
          .execute(),
      );
    } finally {
      await before.close();
    }

    const store = await openTestStore(place);
    t.after(() => store.close());
    const holder = async (pool: "workload" | "preview" | "internal", word: string) =>
      (await store.heldWords.holderOf(pool, word))?.uid;
    assert.equal(await holder("workload", "sbx-api-evil-main"), made["main/api-evil"]);
    const later = await store.resources.getByUid("evil-main", made["evil-main/api"] ?? "");
    assert.ok(later);
    assert.match(hostLabelOf(later) ?? "", /^sbx-api-evil-main-[0-9a-f]{8}$/);
    assert.equal(await holder("workload", hostLabelOf(later) ?? ""), later.uid);
    const elder = await store.resources.getByUid("main", made["main/api-evil"] ?? "");
    assert.equal(elder && hostLabelOf(elder), undefined);

    const words = async (workspace: string, name: string) =>
      (await store.heldWords.wordsOf("internal", workspace, "agent", [name])).get(name) ?? "";
    assert.equal(await holder("internal", await words("x", "y-agent-z")), made["x/y-agent-z"]);
    assert.equal(await holder("internal", await words("x-agent-y", "z")), made["x-agent-y/z"]);
    assert.notEqual(await words("x", "y-agent-z"), await words("x-agent-y", "z"));

    const web = made["main/web"] ?? "";
    assert.equal(await holder("preview", web), web, "the address of an old preview is its uid");
    assert.equal(await holder("preview", "shop-main"), made["main/shop"]);
    assert.equal((await store.claims.holderOf("preview-prefix", "main/shop"))?.uid, made["main/shop"]);
  });

  test("a label survives every change of the resource's state", async (t) => {
    const place = await kind.fresh();
    t.after(() => place.remove());
    const store = await openTestStore(place);
    t.after(() => store.close());
    await addWorkspace(store, "main", "a");
    await addWorkspace(store, "evil-main", "b");
    await store.resources.create(draftOf("sandbox", "api-evil"));
    const { resource } = await store.resources.create(draftOf("sandbox", "api", { workspace: "evil-main" }));
    const label = hostLabelOf(resource) ?? "";
    assert.match(label, /^sbx-api-evil-main-/);
    const changed = await store.resources.update("evil-main", resource.uid, () => ({ state: { other: 1 } }));
    assert.deepEqual(changed?.state, { other: 1, hostLabel: label });
  });
}

async function insertWorkspace(database: Database, name: string, account: string): Promise<void> {
  const texts = { display_name: "", region: "", labels: "{}", group_mappings: "[]", runtime: "{}", status: "ready" };
  const times = { created_at: 1, updated_at: 1, created_by: "test", updated_by: "test" };
  await database.write(({ queries }) =>
    queries
      .insertInto("workspaces")
      .values({
        ...texts,
        ...times,
        name,
        id: name,
        account_id: account,
        status_reason: null,
        version: 1,
        deleted_at: null,
      })
      .execute(),
  );
}

let clockMs = 1;

async function insertResource(
  database: Database,
  kind: string,
  workspace: string,
  name: string,
  { parent = "", spec = {} }: { parent?: string; spec?: object },
): Promise<string> {
  clockMs += 1;
  const uid = uuidv7(clockMs);
  const texts = { metadata: "{}", spec: JSON.stringify(spec), state: "{}", events: "[]", search: name };
  const counts = { generation: 1, observed_generation: 1, version: 1, created_at: clockMs, updated_at: clockMs };
  const nothing = { external_id: null, status: null, deleted_at: null, secrets: null, created_by: "", updated_by: "" };
  const id = database.dialect === "sqlite" ? clockMs : null;
  await database.write(({ queries }) =>
    queries
      .insertInto("resources")
      // The column `status_at` came with a later migration.
      .values({ ...texts, ...counts, ...nothing, id, uid, workspace, kind, parent, name, slot: name } as ResourceRow)
      .execute(),
  );
  return uid;
}
