import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type TestDatabase, type TestPlace, testDatabases } from "../../../test/databases.ts";
import { addWorkspace, openTestStore } from "../../../test/store.ts";
import type { Store } from "../store.ts";
import type { TaskClaim, TaskOutcome } from "./execution.ts";
import type { ExecutionDraft } from "./executions.ts";

const databases = await testDatabases();
after(() => databases.stop());
for (const database of databases.all)
  describe(`executions on ${database.name}`, { skip: database.skip }, () => suite(database));

function suite(database: TestDatabase): void {
  let store: Store;
  let place: TestPlace;
  let nowMs = 1_800_000_000_000;
  before(async () => {
    place = await database.migrated();
    store = await openTestStore(place, { clock: { now: () => nowMs } });
    await addWorkspace(store);
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
    const [claim] = await store.executions.claim(id, holder, 10_000, 1);
    assert.ok(claim, "a task was to be had");
    return claim;
  };
  const report = async ({ executionId, index, attempt }: TaskClaim, outcome: TaskOutcome): Promise<boolean> =>
    (await store.executions.report(executionId, [{ index, attempt, outcome }], rules)) === 1;
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
      Array.from({ length: 30 }, (_, n) => store.executions.claim(id, `h${n % 3}`, 10_000, 1 + (n % 3))),
    );
    const indexes = claims.flat().map((claim) => claim.index);
    assert.deepEqual(
      indexes.toSorted((a, b) => a - b),
      Array.from({ length: 40 }, (_, n) => n),
    );
    assert.equal((await sums(id)).running, 40);
  });

  test("parallelism is never exceeded", async () => {
    const { id } = await store.executions.create(draft(10, { parallelism: 3 }));
    const claims = await Promise.all(Array.from({ length: 10 }, () => store.executions.claim(id, "h", 10_000, 2)));
    assert.equal(claims.flat().length, 3);
  });

  test("tasks are claimed and reported many at a time, each report once", async () => {
    const { id } = await store.executions.create(draft(9, { maxRetries: 0 }));
    const claims = await store.executions.claim(id, "h", 10_000, 9);
    assert.equal(new Set(claims.map(({ workload }) => workload)).size, 9);
    const reports = claims.map(({ index, attempt }) => ({
      ...{ index, attempt },
      outcome: [
        { result: "succeeded" } as const,
        { result: "failed", exitCode: 1, reason: "Error", message: "no" } as const,
        { result: "lost", message: "gone" } as const,
      ][index % 3] as TaskOutcome,
    }));
    assert.equal(await store.executions.report(id, reports, rules), 9);
    assert.equal(await store.executions.report(id, reports, rules), 0);
    const row = await sums(id);
    assert.deepEqual([row.success, row.failure, row.retrying, row.running], [3, 3, 3, 0]);
    const again = await store.executions.claim(id, "h", 10_000, 9);
    assert.deepEqual(
      again.map(({ index, attempt, previousWorkload }) => [index, attempt, previousWorkload]),
      [2, 5, 8].map((index) => [index, 2, `${id}-${index}-1`]),
    );
  });

  test("of every job the oldest that have something to start", async () => {
    for (let n = 0; n < 20; n += 1) await store.executions.create(draft(2, { jobUid: "many", parallelism: 3 }));
    const { id } = await store.executions.create(draft(1, { jobUid: "one", parallelism: 1 }));
    const of = async (jobUid: string) =>
      (await store.executions.listClaimableAcrossWorkspaces(1000)).filter((row) => row.job_uid === jobUid);
    const many = await of("many");
    assert.equal(many.length, 16);
    assert.deepEqual([many[0]?.waiting, many[0]?.job_running], [2, 0]);
    assert.equal((await of("one")).length, 1);
    const one = await claimed(id);
    assert.deepEqual(await of("one"), [], "it has no more");
    await report(one, { result: "failed", exitCode: 1, reason: "Error", message: "" });
    assert.deepEqual(await of("one"), [], "the pause");
    nowMs += 1001;
    assert.equal((await of("one"))[0]?.waiting, 1);
    await claimed(many[0]?.id ?? "");
    assert.deepEqual(
      (await of("many")).slice(0, 2).map((row) => [row.id, row.waiting, row.running, row.job_running]),
      [
        [many[0]?.id, 1, 1, 1],
        [many[1]?.id, 2, 0, 1],
      ],
    );
    for (const { id: each } of many.slice(1, 3)) await claimed(each);
    assert.deepEqual(await of("many"), [], "the job is at its limit");
    assert.deepEqual(
      await store.executions.loadOf("many").then(({ jobRunning, jobWaiting }) => [jobRunning, jobWaiting]),
      [3, 37],
    );
  });

  test("a failed task is retried after a pause, then fails the execution", async () => {
    const { id } = await store.executions.create(draft(1));
    const failure = { result: "failed", exitCode: 3, reason: "Error", message: "exit code 3" } as const;
    assert.equal(await report(await claimed(id), failure), true);
    assert.deepEqual(await store.executions.claim(id, "h", 10_000, 1), [], "the pause");
    nowMs += 1001;
    const second = await claimed(id);
    assert.equal(second.attempt, 2);
    await report(second, failure);
    const row = await sums(id);
    assert.deepEqual([row.status, row.failure, row.retried], ["failed", 1, 1]);
  });

  test("a lost runner does not use up a retry, and its late report is refused", async () => {
    const { id } = await store.executions.create(draft(1, { maxRetries: 0 }));
    const first = await claimed(id);
    nowMs += 20_000;
    const expired = await store.executions.listExpiredLeases(10_000);
    assert.ok(expired.some((task) => task.execution_id === id));
    await report(first, { result: "lost", message: "gone" });
    const second = await claimed(id, "h2");
    assert.equal(second.previousWorkload, first.workload);
    assert.equal(await report(first, { result: "succeeded" }), false, "fenced");
    assert.equal(await report(second, { result: "succeeded" }), true);
    assert.equal((await sums(id)).status, "succeeded");
  });

  test("cancelling ends what has not started and lets the rest finish", async () => {
    const { id } = await store.executions.create(draft(5));
    const running = await claimed(id);
    const row = await store.executions.cancel("main", id, 1000);
    assert.deepEqual([row?.status, row?.cancelled], ["cancelling", 4]);
    assert.equal(await store.executions.cancel("elsewhere", id, 1000), null);
    await report(running, { result: "succeeded" });
    assert.deepEqual([(await sums(id)).status, (await sums(id)).success], ["cancelled", 1]);
  });

  test("a job that goes takes all its executions along", async () => {
    const [busy, idle, other] = await Promise.all(
      ["going", "going", "staying"].map((jobUid) => store.executions.create(draft(3, { jobUid }))),
    );
    const [running, failed] = [await claimed(busy?.id ?? ""), await claimed(busy?.id ?? "")];
    await report(failed, { result: "failed", exitCode: 1, reason: "Error", message: "" });
    await store.executions.cancelAllOf("going", 1000);
    const left = await sums(busy?.id ?? "");
    assert.deepEqual([left.status, left.cancelled, left.running, left.retrying], ["cancelling", 2, 1, 0]);
    await report(running, { result: "lost", message: "" });
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
