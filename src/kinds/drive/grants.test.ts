import assert from "node:assert/strict";
import { after, test } from "node:test";
import { testDatabases } from "../../../test/databases.ts";
import { addWorkspace, openTestStore } from "../../../test/store.ts";
import { uuidv7 } from "../../lib/ids.ts";
import type { Call, Platform } from "../port.ts";
import { RULED_MAX, requireGrantable } from "./grants.ts";

const databases = await testDatabases();
after(() => databases.stop());
const [sqlite] = databases.all;
assert.ok(sqlite);

test("a member sets no labels where there are more drives with permissions than are checked", async (t) => {
  const place = await sqlite.fresh();
  const store = await openTestStore(place);
  t.after(async () => {
    await store.close();
    place.remove();
  });
  await addWorkspace(store, "main");
  const spec = { permissions: [{ labels: { team: "a" }, mode: "read" }] };
  const add = (name: string): Promise<unknown> =>
    store.resources.create({
      ...{ uid: uuidv7(Date.now()), workspace: "main", kind: "drive", name, parent: "", metadata: {}, spec },
      ...{ secrets: {}, state: {}, status: "DEPLOYED", events: [], revision: false, actor: "test", settled: true },
    });
  await Promise.all(Array.from({ length: RULED_MAX }, (_, n) => add(`drive-${n}`)));

  const labelled = { workspace: "main", kind: "sandbox", name: "box", metadata: { labels: { colour: "red" } } };
  const call = { role: "member", caller: { subjectType: "user", subject: "u" } } as unknown as Pick<
    Call,
    "caller" | "role"
  >;
  const deps = { store, settings: { brand: "berth" } } as unknown as Platform;
  await requireGrantable(labelled, null, call, deps);
  await add("one-more");
  await assert.rejects(requireGrantable(labelled, null, call, deps), /only an admin sets labels/);
  await requireGrantable(labelled, null, { ...call, role: "admin" }, deps);
});
