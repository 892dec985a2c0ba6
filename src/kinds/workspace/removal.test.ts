import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type TestDatabase, type TestPlace, testDatabases } from "../../../test/databases.ts";
import { addWorkspace, openTestStore } from "../../../test/store.ts";
import { uuidv7 } from "../../lib/ids.ts";
import { systemClock } from "../../lib/time/clock.ts";
import { type LogStore, openLogStore } from "../../node/logs/log-store.ts";
import type { Store } from "../../store/store.ts";
import { removeContents, removeWithin, resumeWorkspaceRemovals } from "./removal.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.all)
  describe(`removing a workspace on ${database.name}`, { skip: database.skip }, () => suite(database));

function suite(database: TestDatabase): void {
  let store: Store;
  let logs: LogStore;
  let place: TestPlace;
  before(async () => {
    place = await database.migrated();
    const onError = (error: unknown): void => console.error(error);
    logs = openLogStore({ dir: join(place.dataDir, "logs"), clock: systemClock, onError });
    store = await openTestStore(place);
  });
  after(async () => {
    await store.close();
    place.remove();
  });

  const open = (name: string): Promise<void> => addWorkspace(store, name);
  const add = async (workspace: string, kind: string, name: string, parent = ""): Promise<string> => {
    const uid = uuidv7(Date.now());
    await store.resources.create({
      ...{ uid, workspace, kind, name, parent, metadata: {}, spec: {}, secrets: {}, state: {}, status: "DEPLOYED" },
      ...{ events: [], revision: true, actor: "test", settled: true },
    });
    return uid;
  };

  test("more than a page goes, with what is contained and its revisions", async () => {
    await open("large");
    const parent = await add("large", "tree", "root");
    await Promise.all(Array.from({ length: 210 }, (_, n) => add("large", "leaf", `leaf-${n}`, parent)));
    const tag = { workspace: "large", plural: "leaves", name: "leaf-1", uid: parent, source: "run" } as const;
    logs.append(tag, [{ message: "rustles", severity: 9 }]);
    await store.workspaces.markDeleted("large", "test");
    assert.equal(await removeContents("large", "test", { store, logs, reconciledKinds: [] }), true);
    assert.deepEqual(await store.resources.countsIn("large"), {});
    assert.deepEqual(await logs.names("large", "leaves"), []);
    assert.equal(await store.workspaces.isNameTaken("large"), false);
    const revisions = await store.database.read.selectFrom("revisions").select("uid").execute();
    assert.deepEqual(revisions, []);
  });

  test("what runs is told to stop first; the workspace goes when it has", async () => {
    await open("running");
    await add("running", "note", "n");
    const uid = await add("running", "machine", "m");
    await store.workspaces.markDeleted("running", "test");
    const deps = { store, logs, reconciledKinds: ["machine"] };
    assert.equal(await removeContents("running", "test", deps), false);
    const [left, ...rest] = await store.resources.listNested("running", "machine", 10);
    assert.deepEqual(rest, []);
    assert.equal(left?.status, "DELETING");
    assert.match(left?.events.at(-1)?.message ?? "", /with the workspace/);
    assert.deepEqual(await store.resources.listNested("running", "note", 10), []);

    const gone = removeWithin("running", "test", deps, AbortSignal.timeout(60_000));
    await store.resources.delete("running", uid);
    assert.equal(await gone, true);
    assert.equal(await store.workspaces.isNameTaken("running"), false);
  });

  test("a wait that is too short leaves the rest to the next round", async () => {
    await open("slow");
    const uid = await add("slow", "machine", "m");
    await store.workspaces.markDeleted("slow", "test");
    const deps = { store, logs, reconciledKinds: ["machine"] };
    assert.equal(await removeWithin("slow", "test", deps, AbortSignal.timeout(50)), false);
    await store.resources.delete("slow", uid);
    await resumeWorkspaceRemovals(deps);
    assert.equal(await store.workspaces.isNameTaken("slow"), false);
  });

  test("executions end with the workspace, and their workers find nothing to do", async () => {
    await open("busy");
    const { id } = await store.executions.create({
      ...{ workspace: "busy", jobUid: "j", job: "job", tasks: [{}, {}], parallelism: 1, maxRetries: 0, timeoutS: 60 },
      ...{ memoryMb: 128, memoryOverride: null, env: {}, revision: "1", slot: null, cause: "api", createdBy: "test" },
    });
    assert.equal((await store.executions.claim(id, "worker", 10_000, 1)).length, 1);
    await store.workspaces.markDeleted("busy", "test");
    assert.equal(await removeContents("busy", "test", { store, logs, reconciledKinds: [] }), true);
    assert.equal(await store.executions.getAcrossWorkspaces(id), null);
    assert.deepEqual(await store.executions.claim(id, "worker", 10_000, 1), []);
    assert.deepEqual(await store.database.read.selectFrom("tasks").select("execution_id").execute(), []);
  });

  test("retired records stop nothing", async () => {
    await open("past");
    const uid = await add("past", "machine", "m");
    await store.resources.update("past", uid, () => ({ retire: true, status: "TERMINATED" }));
    await store.workspaces.markDeleted("past", "test");
    assert.equal(await removeContents("past", "test", { store, logs, reconciledKinds: ["machine"] }), true);
  });
}
