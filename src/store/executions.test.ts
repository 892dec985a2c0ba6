import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type TestDatabase, testDatabases } from "../../test/databases.ts";
import type { TaskClaim } from "./execution.ts";
import type { ExecutionDraft } from "./executions.ts";
import { openStore, type Store } from "./store.ts";

const databases = await testDatabases();
after(() => databases.stop());
for (const database of databases.all)
  describe(`executions on ${database.name}`, { skip: database.skip }, () => suite(database));

function suite(database: TestDatabase): void {
  let store: Store;
  let place: Awaited<ReturnType<TestDatabase["fresh"]>>;
  let nowMs = 1_800_000_000_000;
  before(async () => {
    place = await database.fresh();
    store = await openStore({
      ...place,
      secretKey: Buffer.alloc(32, 1),
      clock: { now: () => nowMs },
      onError: assert.ifError,
    });
    const blank = { accountId: "a", displayName: "", region: "", labels: {}, groupMappings: [], runtime: {} };
    await store.write((tx) => store.workspaces.insert(tx, { name: "main", ...blank }, "test"));
  });
  after(async () => {
    await store.close();
    place.remove();
  });
  const rules = { retryAfterMs: () => 1000, keepMs: 60_000 };
  const draft = (tasks: number, more: Partial<ExecutionDraft> = {}): ExecutionDraft => ({
    workspace: "main",
    jobUid: "j",
    job: "job",
    tasks: Array.from({ length: tasks }, (_, n) => ({ n })),
    parallelism: 100,
    maxRetries: 1,
    timeoutS: 60,
    memoryMb: 128,
    memoryOverride: null,
    env: { A: "secret" },
    revision: "1",
    slot: null,
    cause: "api",
    createdBy: "test",
    ...more,
  });
  const claimed = async (id: string, holder = "h1"): Promise<TaskClaim> => {
    const claim = await store.executions.claim(id, holder, 10_000);
    assert.ok(claim, "a task was to be had");
    return claim;
  };
  const sums = async (id: string) => {
    const row = await store.executions.getAcrossWorkspaces(id);
    assert.ok(row);
    assert.equal(
      row.total,
      row.total - row.next_index + row.running + row.retrying + row.success + row.failure + row.cancelled,
      "the counters add up",
    );
    return row;
  };

  test("every task is handed out once, however many ask", async () => {
    const { id } = await store.executions.create(draft(40));
    const claims = await Promise.all(
      Array.from({ length: 60 }, (_, n) => store.executions.claim(id, `h${n % 3}`, 10_000)),
    );
    const indexes = claims.flatMap((claim) => (claim ? [claim.index] : []));
    assert.deepEqual(
      indexes.toSorted((a, b) => a - b),
      Array.from({ length: 40 }, (_, n) => n),
    );
    assert.equal((await sums(id)).running, 40);
  });

  test("parallelism is never exceeded", async () => {
    const { id } = await store.executions.create(draft(10, { parallelism: 3 }));
    const claims = await Promise.all(Array.from({ length: 10 }, () => store.executions.claim(id, "h", 10_000)));
    assert.equal(claims.filter(Boolean).length, 3);
  });

  test("a failed task is retried after a pause, then fails the execution", async () => {
    const { id } = await store.executions.create(draft(1));
    const failure = { result: "failed", exitCode: 3, reason: "Error", message: "exit code 3" } as const;
    assert.equal(await store.executions.report(await claimed(id), failure, rules), true);
    assert.equal(await store.executions.claim(id, "h", 10_000), null, "the pause");
    nowMs += 1001;
    const second = await claimed(id);
    assert.equal(second.attempt, 2);
    await store.executions.report(second, failure, rules);
    const row = await sums(id);
    assert.deepEqual([row.status, row.failure, row.retried], ["failed", 1, 1]);
  });

  test("a lost runner does not use up a retry, and its late report is refused", async () => {
    const { id } = await store.executions.create(draft(1, { maxRetries: 0 }));
    const first = await claimed(id);
    nowMs += 20_000;
    const expired = await store.executions.listExpiredLeases(10_000);
    assert.ok(expired.some((task) => task.execution_id === id));
    await store.executions.report(first, { result: "lost", message: "gone" }, rules);
    const second = await claimed(id, "h2");
    assert.equal(second.previousWorkload, first.workload);
    assert.equal(await store.executions.report(first, { result: "succeeded" }, rules), false, "fenced");
    assert.equal(await store.executions.report(second, { result: "succeeded" }, rules), true);
    assert.equal((await sums(id)).status, "succeeded");
  });

  test("cancelling ends what has not started and lets the rest finish", async () => {
    const { id } = await store.executions.create(draft(5));
    const running = await claimed(id);
    const row = await store.executions.cancel("main", id, 1000);
    assert.deepEqual([row?.status, row?.cancelled], ["cancelling", 4]);
    assert.equal(await store.executions.cancel("elsewhere", id, 1000), null);
    await store.executions.report(running, { result: "succeeded" }, rules);
    assert.deepEqual([(await sums(id)).status, (await sums(id)).success], ["cancelled", 1]);
  });

  test("a job that goes takes all its executions along", async () => {
    const [busy, idle, other] = await Promise.all(
      ["going", "going", "staying"].map((jobUid) => store.executions.create(draft(3, { jobUid }))),
    );
    const [running, failed] = [await claimed(busy?.id ?? ""), await claimed(busy?.id ?? "")];
    await store.executions.report(failed, { result: "failed", exitCode: 1, reason: "Error", message: "" }, rules);
    await store.executions.cancelAllOf("going", 1000);
    const left = await sums(busy?.id ?? "");
    assert.deepEqual([left.status, left.cancelled, left.running, left.retrying], ["cancelling", 2, 1, 0]);
    await store.executions.report(running, { result: "lost", message: "" }, rules);
    assert.equal((await sums(busy?.id ?? "")).status, "cancelled");
    const ended = await sums(idle?.id ?? "");
    assert.deepEqual([ended.status, ended.cancelled, ended.expires_at], ["cancelled", 3, nowMs + 1000]);
    assert.equal((await sums(other?.id ?? "")).status, "queued");
  });

  test("one slot makes one execution", async () => {
    const made = await Promise.all(
      Array.from({ length: 5 }, () => store.executions.create(draft(1, { slot: "job@12:00" }))),
    );
    assert.equal(new Set(made.map(({ id }) => id)).size, 1);
  });

  test("arguments come back from anywhere in a long list", async () => {
    const { id } = await store.executions.create(draft(1203));
    assert.deepEqual(await store.executions.argumentsOf(id, 498, 4), [{ n: 498 }, { n: 499 }, { n: 500 }, { n: 501 }]);
    assert.deepEqual(await store.executions.argumentsOf(id, 1202, 10), [{ n: 1202 }]);
  });
}
