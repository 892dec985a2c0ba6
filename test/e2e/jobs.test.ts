import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { onEachDatabase } from "../each-platform.ts";
import { type Answer, TEST_KEY } from "../platform.ts";

/** Far longer than anything here takes: a test that waits in vain fails. */
const TRY_MS = 20;
const TRIES = 4500;

await onEachDatabase(
  "jobs",
  ({ call, make, url, store }) => {
    const dir = mkdtempSync(join(tmpdir(), "jobs-"));
    after(() => rmSync(dir, { recursive: true, force: true }));
    const image = "fake/base-image:latest";
    const shell = (script: string): string[] => ["sh", "-c", script];
    const file = (name: string): string => join(dir, name);

    before(async () => {
      await make("/jobs", "quick", { runtime: { image, memory: 256, command: shell("true") } });
      await make("/jobs", "held", {
        runtime: {
          image,
          memory: 256,
          maxConcurrentTasks: 1,
          command: shell(
            `echo $TASK_INDEX >> $OUT; env > $OUT.part; mv $OUT.part $OUT.env; while [ ! -e $OUT.go ]; do sleep 0.02; done`,
          ),
        },
      });
    });

    const run = async (job: string, body: object): Promise<string> => {
      const answer = await call("POST", `/jobs/${job}/executions`, { body });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return answer.body.executionId;
    };
    const read = async (job: string, id: string): Promise<Answer["body"]> =>
      (await call("GET", `/jobs/${job}/executions/${id}`)).body;
    const until = async <T>(look: () => Promise<T | false> | T | false): Promise<T> => {
      for (let tries = 0; tries < TRIES; tries += 1) {
        const found = await look();
        if (found !== false) return found;
        await delay(TRY_MS);
      }
      throw new Error("it did not happen");
    };
    const ended = (job: string, id: string) =>
      until(async () => {
        const execution = await read(job, id);
        return execution.metadata.completedAt ? execution : false;
      });
    const exists = (path: string) => until(() => existsSync(path));

    test("an execution is a grid of letters, then of changes", async () => {
      const grid = async (id: string, query = "") =>
        (await call("GET", `/jobs/quick/executions/${id}/tasks/grid${query}`)).body;
      const id = await run("quick", { tasks: [{}, {}, {}, {}] });
      const early = await grid(id);
      assert.match(early.tasks, /^[prs]{4}$/);
      await ended("quick", id);
      const whole = await grid(id, "?times=true");
      assert.equal(whole.tasks, "ssss");
      assert.deepEqual(whole.counts, { pending: 0, running: 0, retrying: 0, succeeded: 4, failed: 0, cancelled: 0 });
      assert.deepEqual(whole.started.index, [0, 1, 2, 3]);
      assert.ok(whole.started.start.every((ms: number, n: number) => ms >= 0 && ms <= (whole.started.end[n] ?? 0)));
      const { changed, tasks } = await grid(id, `?since=${early.version}`);
      assert.equal(tasks, undefined);
      assert.deepEqual(changed, { index: [0, 1, 2, 3], tasks: "ssss" });
      assert.deepEqual((await grid(id, "?since=99999999999999")).changed, { index: [], tasks: "" });
      assert.equal((await call("GET", "/jobs/quick/executions/none/tasks/grid")).status, 404);
    });

    test("failed tasks run again with their arguments, as an execution of their own", async () => {
      await make("/jobs", "picky", { runtime: { image, memory: 256, command: shell("test $TASK_INDEX != 1") } });
      const id = await run("picky", { tasks: [{ a: 0 }, { a: 1 }, { a: 2 }] });
      assert.equal((await ended("picky", id)).stats.failure, 1);
      const again = await call("POST", `/jobs/picky/executions/${id}/rerun`);
      assert.equal(again.status, 200, JSON.stringify(again.body));
      assert.deepEqual(again.body.tasks, [{ a: 1 }]);
      const { status, stats } = await ended("picky", again.body.executionId);
      assert.deepEqual([status, stats.total], ["succeeded", 1], "it is the first task there");
      const none = await call("POST", `/jobs/picky/executions/${again.body.executionId}/rerun`);
      assert.deepEqual([none.status, /No task .* is failed/.test(none.body.message)], [409, true]);
    });

    test("tasks run, and the execution says so", async () => {
      const answer = await call("POST", "/jobs/quick/executions", { body: { tasks: [{ a: 1 }, { a: 2 }, { a: 3 }] } });
      assert.equal(answer.body.jobId, "quick");
      assert.deepEqual(answer.body.tasks, [{ a: 1 }, { a: 2 }, { a: 3 }]);
      const execution = await ended("quick", answer.body.executionId);
      assert.equal(execution.status, "succeeded");
      assert.deepEqual(execution.stats, { total: 3, success: 3, failure: 0, cancelled: 0, retried: 0, running: 0 });
      assert.equal(execution.tasks.length, 3);
      assert.deepEqual(execution.spec.tasks, execution.tasks);
      const brief = await call("GET", `/jobs/quick/executions/${answer.body.id}?inlineTasks=false`);
      assert.equal(brief.body.tasks, undefined);
      assert.ok(Date.parse(execution.metadata.startedAt) <= Date.parse(execution.metadata.completedAt));
      const { body } = await call("GET", `/jobs/quick/executions/${answer.body.id}/tasks?limit=2`);
      assert.deepEqual([body.data.length, body.meta.total, body.meta.hasMore], [2, 3, true]);
      const rest = await call("GET", `/jobs/quick/executions/${answer.body.id}/tasks?cursor=${body.meta.nextCursor}`);
      assert.deepEqual(
        rest.body.data.map((task: Answer["body"]) => [task.metadata.name, task.status]),
        [["2", "succeeded"]],
      );
      const names = async (query: string) =>
        (await call("GET", `/jobs/quick/executions/${answer.body.id}/tasks?${query}`)).body.data.map(
          (task: Answer["body"]) => task.metadata.name,
        );
      assert.deepEqual(await names("sort=name:desc&limit=2"), ["2", "1"]);
      assert.deepEqual(await names("q=12"), []);
      const found = async (q: string) => (await call("GET", `/jobs/quick/executions?q=${q}`)).body.data.length;
      assert.equal(await found(answer.body.id.slice(-6).toUpperCase()), 1);
      assert.equal(await found("no%25such"), 0);
      const older = await call("GET", `/jobs/quick/executions/${answer.body.id}`, { version: "2026-04-20" });
      assert.equal(older.body.tasks.length, 3);
    });

    test("a job is started at its address too", async () => {
      const response = await fetch(`${url()}/main/jobs/quick/executions`, {
        method: "POST",
        headers: { authorization: `Bearer ${TEST_KEY}`, "content-type": "application/json" },
        body: JSON.stringify({ tasks: [{}] }),
      });
      const { executionId } = (await response.json()) as { executionId: string };
      assert.equal((await ended("quick", executionId)).status, "succeeded");
      assert.equal((await fetch(`${url()}/main/jobs/quick/executions`, { method: "POST" })).status, 401);
      assert.equal((await fetch(`${url()}/other/jobs/quick/executions`, { method: "POST" })).status, 401);
    });

    test("a task knows which one it is, and reads its arguments without a key", async () => {
      const out = file("contract");
      const id = await run("held", { tasks: [{ n: 7 }, { n: 8 }], env: { OUT: out }, memory: 128 });
      await exists(`${out}.env`);
      const env = Object.fromEntries(
        readFileSync(`${out}.env`, "utf8")
          .split("\n")
          .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
      );
      assert.deepEqual(
        [env.BL_TASK_KEY, env.TASK_INDEX, env.BL_EXECUTION_ID, env.BL_NAME, env.BL_TYPE],
        ["TASK_INDEX", "0", id, "held", "job"],
      );
      const address = new URL(env.BL_EXECUTION_DATA_URL ?? "");
      const fetchData = (path: string) => fetch(`${url()}${path}`);
      assert.deepEqual(await (await fetchData(address.pathname)).json(), { tasks: [{ n: 7 }, { n: 8 }] });
      assert.equal((await fetchData(`${address.pathname}x`)).status, 404);
      assert.equal((await fetchData(address.pathname.replace("/data/0.", "/data/1."))).status, 404);
      const execution = await read("held", id);
      assert.deepEqual(
        [execution.status, execution.spec.envOverride, execution.spec.memoryOverride, execution.stats.running],
        ["running", '{"OUT":"***"}', 128, 1],
      );
      writeFileSync(`${out}.go`, "");
      assert.equal((await ended("held", id)).status, "succeeded");
      assert.equal((await fetchData(address.pathname)).status, 404, "the address dies with its task");
      assert.equal(readFileSync(out, "utf8"), "0\n1\n");
    });

    test("at capacity a job queues or refuses, and a cancelled one lets what runs finish", async () => {
      const out = file("capacity");
      const id = await run("held", { tasks: [{}, {}, {}], env: { OUT: out } });
      await exists(out);
      const refused = await call("POST", "/jobs/held/executions", { body: { tasks: [{}], allowQueue: false } });
      assert.equal(refused.status, 429);
      const queued = await run("held", { tasks: [{}], env: { OUT: file("queued") } });
      assert.equal((await read("held", queued)).status, "queued");
      const { body } = await call("GET", "/jobs/held/executions");
      assert.equal(body.data.filter((row: Answer["body"]) => !row.metadata.completedAt).length, 2, "none was recorded");
      const cancelled = await call("DELETE", `/jobs/held/executions/${id}`);
      assert.deepEqual([cancelled.body.status, cancelled.body.stats.cancelled], ["cancelling", 2]);
      writeFileSync(`${out}.go`, "");
      const execution = await ended("held", id);
      assert.deepEqual([execution.status, execution.stats.success, execution.stats.cancelled], ["cancelled", 1, 2]);
      assert.equal((await call("DELETE", `/jobs/held/executions/${id}`)).status, 409);
      writeFileSync(file("queued.go"), "");
      assert.equal((await ended("held", queued)).status, "succeeded");
    });

    test("a failing task is tried again, then its last words are kept", async () => {
      const out = file("failing");
      await make("/jobs", "failing", {
        runtime: { image, maxRetries: 1, command: shell(`echo $$ >> ${out}; echo "no luck" >&2; exit 3`) },
      });
      const id = await run("failing", { tasks: [{}] });
      const execution = await ended("failing", id);
      assert.deepEqual([execution.status, execution.stats.failure, execution.stats.retried], ["failed", 1, 1]);
      assert.equal(readFileSync(out, "utf8").trim().split("\n").length, 2);
      const { body } = await call("GET", `/jobs/failing/executions/${id}/tasks`);
      assert.equal(body.data[0].status, "failed");
      assert.match(body.data[0].conditions[0].message, /exit code 3.*no luck/);
    });

    test("a task that takes too long is ended", async () => {
      await make("/jobs", "slow", { runtime: { image, timeout: 1, command: ["sleep", "600"] } });
      const id = await run("slow", { tasks: [{}] });
      assert.equal((await ended("slow", id)).status, "timeout");
      const { body } = await call("GET", `/jobs/slow/executions/${id}/tasks`);
      assert.equal(body.data[0].conditions[0].reason, "Timeout");
    });

    test("a client's own id makes one execution, and finds it", async () => {
      const first = await run("quick", { tasks: [{}], executionId: "nightly-1" });
      assert.equal(await run("quick", { tasks: [{}, {}], executionId: "nightly-1" }), first);
      assert.equal((await read("quick", "nightly-1")).metadata.id, first);
      assert.equal((await call("GET", "/jobs/held/executions/nightly-1")).status, 404);
      assert.equal((await call("GET", `/jobs/held/executions/${first}`)).status, 404);
    });

    test("what cannot be is refused", async () => {
      await make("/jobs", "empty", {});
      await make("/jobs", "off", { enabled: false, runtime: { image } });
      const cases: [string, object, number][] = [
        ["quick", { tasks: [] }, 400],
        ["quick", { tasks: [1] }, 400],
        ["quick", { tasks: [{}], memory: 257 }, 400],
        ["quick", { tasks: [{}], env: { BL_NAME: "x" } }, 400],
        ["empty", { tasks: [{}] }, 409],
        ["off", { tasks: [{}] }, 409],
        ["nowhere", { tasks: [{}] }, 404],
      ];
      for (const [job, body, status] of cases)
        assert.equal((await call("POST", `/jobs/${job}/executions`, { body })).status, status, JSON.stringify(body));
      const id = await run("quick", { tasks: [{}] });
      assert.equal((await call("GET", `/jobs/quick/executions/${id}x`)).status, 404);
    });

    test("older clients page executions by an offset", async () => {
      await make("/jobs", "paged", { runtime: { image, command: shell("true") } });
      const ids: string[] = [];
      for (let n = 0; n < 3; n += 1) ids.unshift(await run("paged", { tasks: [{}] }));
      const page = await call("GET", "/jobs/paged/executions?offset=1&limit=1", { version: "2026-04-16" });
      assert.deepEqual(
        page.body.map((row: Answer["body"]) => row.metadata.id),
        [ids[1]],
      );
      const newer = await call("GET", "/jobs/paged/executions?limit=2");
      assert.deepEqual([newer.body.data.length, newer.body.meta.total, newer.body.meta.hasMore], [2, 3, true]);
      const rest = await call("GET", `/jobs/paged/executions?limit=2&cursor=${newer.body.meta.nextCursor}`);
      assert.deepEqual(rest.body.data[0].metadata.id, ids[2]);
    });

    test("a canary runs exactly its share of the executions, and each says which revision it ran", async () => {
      const out = file("trial");
      const runtime = (word: string) => ({ image, memory: 256, command: shell(`echo ${word} >> ${out}`) });
      await make("/jobs", "trial", { runtime: runtime("one") });
      const shares = (wanted: number[]) =>
        until(async () => {
          const { body } = await call("GET", "/jobs/trial/revisions");
          const found = body.map(({ trafficPercent }: Answer["body"]) => trafficPercent);
          return JSON.stringify(found) === JSON.stringify(wanted);
        });
      const put = (spec: object): Promise<Answer> =>
        call("PUT", "/jobs/trial", { body: { metadata: { name: "trial" }, spec } });
      await until(async () => (await call("GET", "/jobs/trial")).body.status === "DEPLOYED");
      const shared = await put({ runtime: runtime("two"), revision: { traffic: 30, stickySessionTtl: 5 } });
      const choice = { active: "1", canary: "2", canaryPercent: 30, traffic: 30, stickySessionTtl: 5 };
      assert.deepEqual(shared.body.spec.revision, choice);
      assert.match(shared.headers.get("warning") ?? "", /stickySessionTtl is kept and has no effect/);
      await shares([30, 70]);
      const { events } = (await call("GET", "/jobs/trial")).body;
      assert.deepEqual([events.at(-1).type, events.at(-1).canaryRevision], ["canary", "2"]);

      const ran = async (ids: string[]): Promise<Record<string, number>> => {
        const count: Record<string, number> = {};
        for (const id of ids) {
          const revision = String((await ended("trial", id)).metadata.revision);
          count[revision] = (count[revision] ?? 0) + 1;
        }
        return count;
      };
      const ids = await Promise.all(Array.from({ length: 20 }, () => run("trial", { tasks: [{}] })));
      assert.deepEqual(await ran(ids), { "1": 14, "2": 6 });
      const words = readFileSync(out, "utf8").trim().split("\n");
      assert.equal(words.filter((word) => word === "two").length, 6);
      assert.equal(words.length, 20);

      // The same execution asked for again takes no turn.
      const first = await run("trial", { tasks: [{}], executionId: "mine" });
      for (let n = 0; n < 3; n += 1) assert.equal(await run("trial", { tasks: [{}], executionId: "mine" }), first);
      const more = await Promise.all(Array.from({ length: 9 }, () => run("trial", { tasks: [{}] })));
      assert.deepEqual(await ran([first, ...more]), { "1": 7, "2": 3 });

      await put({ runtime: runtime("two"), revision: { active: "2" } });
      await shares([100, 0]);
      assert.deepEqual(await ran(await Promise.all([1, 2, 3].map(() => run("trial", { tasks: [{}] })))), { "2": 3 });
    });

    test("deleting a job ends what waits", async () => {
      const out = file("deleted");
      await make("/jobs", "going", {
        runtime: {
          image,
          maxConcurrentTasks: 1,
          command: shell(`touch ${out}; while [ ! -e ${out}.go ]; do sleep 0.02; done`),
        },
      });
      const id = await run("going", { tasks: [{}, {}] });
      const waiting = await run("going", { tasks: [{}, {}, {}] });
      await exists(out);
      assert.equal((await call("DELETE", "/jobs/going")).status, 200);
      assert.equal((await call("GET", `/jobs/going/executions/${id}`)).status, 404);
      assert.equal((await call("POST", "/jobs/going/executions", { body: {} })).status, 404);
      const { executions } = store();
      const rest = await executions.getAcrossWorkspaces(waiting);
      assert.deepEqual([rest?.status, rest?.cancelled], ["cancelled", 3]);
      // Nobody lets the one that runs go on: it is ended with its job.
      const ended = await until(async () => {
        const row = await executions.getAcrossWorkspaces(id);
        return row !== null && row.completed_at !== null && row;
      });
      assert.deepEqual([ended.status, ended.cancelled, ended.running], ["cancelled", 2, 0]);
    });

    test("nothing starts in a workspace that is going away", async () => {
      const { executions, workspaces } = store();
      const draft = {
        ...{ workspace: "leaving", jobUid: "j", job: "j", tasks: [{}], parallelism: 1, maxRetries: 0, timeoutS: 60 },
        ...{ memoryMb: 128, memoryOverride: null, env: {}, revision: "1", slot: null, cause: "api", createdBy: "test" },
      };
      await call("POST", "/workspaces", { body: { name: "leaving" } });
      const { id } = await executions.create(draft);
      await workspaces.markDeleted("leaving", "test");
      await assert.rejects(executions.create(draft), { code: "not_found" });
      assert.ok(id);
    });
  },
  { config: { job_slots: "16", job_memory: "100000", job_lease: "10" } },
);
