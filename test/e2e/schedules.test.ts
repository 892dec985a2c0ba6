import assert from "node:assert/strict";
import { before, test } from "node:test";
import { MASK } from "../../src/contract/secret-fields.ts";
import { onEachDatabase } from "../each-platform.ts";
import { draftOf } from "../store.ts";

await onEachDatabase("schedules", ({ call, make, store }) => {
  const schedules = "/sandboxes/box/schedules";
  const add = (body: object, box = "box") => call("POST", `/sandboxes/${box}/schedules`, { body });
  const command = { command: "true" };
  before(async () => {
    for (const name of ["box", "many", "racing", "mixed"]) await make("/sandboxes", name);
  });

  test("an entry is flat, numbered, and filled in", async () => {
    const { status, body } = await add({ type: "cron", value: "*/5 * * * *", input: { ...command, env: { A: "b" } } });
    assert.equal(status, 200);
    assert.ok(Date.parse(body.createdAt) > 0);
    assert.deepEqual(
      { ...body, createdAt: "" },
      {
        id: "schedule-0",
        type: "cron",
        value: "*/5 * * * *",
        input: { command: "true", env: { A: MASK }, keepAlive: true, timeout: 600 },
        maxExecutions: 100,
        createdAt: "",
      },
    );
    assert.deepEqual((await call("GET", `${schedules}/schedule-0`)).body, body);
    const put = await call("PUT", `${schedules}/schedule-0`, { body: { ...body, value: "0 * * * *" } });
    assert.deepEqual([put.body.value, put.body.input.env.A], ["0 * * * *", MASK]);
    assert.equal((await call("PUT", `${schedules}/schedule-0`, { body: { ...body, id: "other" } })).status, 400);
    const stored = await store().resources.get(await scopeOf("box"), "schedule-0");
    assert.ok(stored);
    assert.deepEqual(store().resources.secretsOf(stored), { "/spec/input/env/A": "b" });
    const gone = await call("DELETE", `${schedules}/schedule-0`);
    assert.equal(gone.body.id, "schedule-0");
    assert.equal((await call("GET", `${schedules}/schedule-0`)).status, 404);
  });

  const scopeOf = async (box: string) => {
    const sandbox = await store().resources.get({ workspace: "main", kind: "sandbox", parent: "" }, box);
    return { workspace: "main", kind: "schedule", parent: sandbox?.uid ?? "" };
  };

  test("sleep becomes a time", async () => {
    const { body } = await add({ type: "sleep", value: "2h", input: command });
    assert.equal(body.type, "at");
    assert.ok(Math.abs(Date.parse(body.value) - Date.now() - 2 * 3600_000) < 60_000);
  });

  test("what is wrong is refused with its path", async () => {
    const cases: [object, RegExp][] = [
      [{ type: "cron", value: "often", input: command }, /^value: /],
      [{ type: "cron", value: "* * * * * *", input: command }, /^value: /],
      [{ type: "at", value: "2020-01-01T00:00:00Z", input: command }, /^value: must be in the future/],
      [{ type: "sleep", value: "a while", input: command }, /^value: /],
      [{ type: "cron", value: "* * * * *" }, /input/],
      [{ type: "cron", value: "* * * * *", input: {} }, /input\.command/],
      [{ type: "never", value: "x", input: command }, /type/],
      [{ id: "a b", type: "cron", value: "* * * * *", input: command }, /id/],
      [{ type: "cron", value: "* * * * *", input: command, maxExecutions: 101 }, /maxExecutions/],
    ];
    for (const [body, message] of cases) {
      const answer = await add(body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.match(answer.body.message, message);
    }
    assert.equal((await add({ type: "cron", value: "* * * * *", input: command }, "nowhere")).status, 404);
  });

  test("entries made in the same moment get numbers of their own", async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => add({ type: "cron", value: "* * * * *", input: command }, "racing")),
    );
    assert.deepEqual(
      answers.map(({ body }) => body.id).sort(),
      Array.from({ length: 8 }, (_, n) => `schedule-${n}`),
    );
  });

  test("there are at most 100, listed in pages of 20", async () => {
    const scope = await scopeOf("many");
    for (let n = 0; n < 99; n += 1) {
      await store().resources.create(
        draftOf("schedule", `schedule-${n}`, { ...scope, spec: { type: "cron", value: "* * * * *", input: command } }),
      );
    }
    const last = await add({ type: "cron", value: "* * * * *", input: command }, "many");
    assert.equal(last.body.id, "schedule-99");
    const refused = await add({ type: "cron", value: "* * * * *", input: command }, "many");
    assert.equal(refused.status, 400);
    assert.match(refused.body.message, /more than 100/);
    const page = await call("GET", "/sandboxes/many/schedules");
    assert.deepEqual([page.body.data.length, page.body.meta.hasMore, page.body.meta.total], [20, true, 100]);
    assert.equal((await call("GET", "/sandboxes/many/schedules?limit=500")).body.data.length, 100);
    assert.equal((await call("GET", "/sandboxes/many/schedules", { version: null })).body.length, 100);
  });

  test("a list may be narrowed to one type, page by page", async () => {
    for (let n = 0; n < 6; n += 1)
      await add(
        n % 2 ? { type: "sleep", value: "1d", input: command } : { type: "cron", value: "* * * * *", input: command },
        "mixed",
      );
    const types: string[] = [];
    let cursor = "";
    do {
      const page = await call("GET", `/sandboxes/mixed/schedules?type=at&limit=2&cursor=${encodeURIComponent(cursor)}`);
      types.push(...page.body.data.map((entry: { type: string }) => entry.type));
      cursor = page.body.meta.nextCursor;
    } while (cursor !== "");
    assert.deepEqual(types, ["at", "at", "at"]);
    const first = await call("GET", "/sandboxes/mixed/schedules?type=at&limit=2");
    const foreign = encodeURIComponent(first.body.meta.nextCursor);
    assert.equal((await call("GET", `/sandboxes/mixed/schedules?type=cron&cursor=${foreign}`)).status, 400);
  });

  test("nothing has fired yet, and the list of executions says so", async () => {
    const { body } = await call("GET", "/sandboxes/box/schedule-executions");
    assert.deepEqual(body, { data: [], meta: { hasMore: false, nextCursor: "", total: 0 } });
  });
});
