import assert from "node:assert/strict";
import {
  appendFileSync,
  globSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { LogTag } from "../../contract/log-line.ts";
import { SEVERITY } from "../../contract/log-line.ts";
import { type Clock, DAY_MS } from "../../lib/time/clock.ts";
import type { LogLine } from "./log-line.ts";
import { type LogBounds, type LogQuery, type LogStore, openLogStore } from "./log-store.ts";
import { SEGMENT_BYTES_MAX } from "./workload-log.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

describe("logs in segment files", () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-logs-"));
  after(() => rmSync(dir, { recursive: true, force: true }));

  const clock = { ms: START, now: (): number => clock.ms } satisfies Clock & { ms: number };
  const open = (place: string, bounds: Partial<LogBounds> = {}): LogStore =>
    openLogStore({
      dir: join(dir, place),
      clock,
      bounds,
      onError: (error) => {
        throw error;
      },
    });
  const tag = (name = "echo", more: Partial<LogTag> = {}): LogTag => ({
    ...{ workspace: "main", plural: "agents", name, uid: "u1", source: "run" as const },
    ...more,
  });
  const line = (message: string, more: Partial<LogLine> = {}): LogLine => ({
    message,
    severity: SEVERITY.INFO,
    ...more,
  });
  const ask = (more: Partial<LogQuery> = {}): LogQuery => ({
    ...{ workspace: "main", plural: "agents", name: "echo", fromMs: START - DAY_MS, toMs: START + DAY_MS, limit: 1000 },
    ...more,
  });
  const messages = async (store: LogStore, more: Partial<LogQuery> = {}): Promise<string[]> =>
    (await store.query(ask(more))).lines.map(({ message }) => message);

  test("newest first, by page, and every time is its own", async () => {
    const store = open("order");
    store.append(
      tag(),
      Array.from({ length: 10 }, (_, n) => line(`line ${n}`)),
    );
    const { lines, total } = await store.query(ask({ limit: 3, offset: 2 }));
    assert.deepEqual(
      lines.map(({ message }) => message),
      ["line 7", "line 6", "line 5"],
    );
    assert.equal(total, 10);
    const times = (await store.query(ask())).lines.map(({ timeUs }) => timeUs);
    assert.deepEqual(
      times,
      [...new Set(times)].sort((a, b) => b - a),
    );
    assert.deepEqual(await messages(store, { name: "another" }), []);
    assert.deepEqual(await store.names("main", "agents"), ["echo"]);
  });

  test("each member of a question narrows the answer", async () => {
    const store = open("filters");
    store.append(tag(), [line("plain"), line("it Failed", { severity: SEVERITY.ERROR + 1, traceId: "t1" })]);
    store.append(tag("echo", { uid: "u2", revision: "2" }), [line("second")]);
    store.append(tag("echo", { executionId: "e", taskId: "3" }), [line("task")]);
    store.append(tag("echo", { source: "build" }), [line("built", { attributes: { e: "e", who: "Ada" } })]);
    const cases: [Partial<LogQuery>, string[]][] = [
      [{ severities: ["ERROR"] }, ["it Failed"]],
      [{ severities: ["FATAL", "TRACE"] }, []],
      [{ traceId: "t1" }, ["it Failed"]],
      [{ search: "fAILED" }, ["it Failed"]],
      [{ search: "ada" }, ["built"]],
      [{ search: '"u1"' }, []],
      [{ uid: "u2" }, ["second"]],
      [{ revision: "2" }, ["second"]],
      [{ executionId: "e" }, ["task"]],
      [{ taskId: "3", executionId: "e" }, ["task"]],
      [{ source: "build" }, ["built"]],
      [{ source: "run", severities: ["INFO"] }, ["task", "second", "plain"]],
      [{ toMs: START - 1 }, []],
      [{ fromMs: START + 1 }, []],
    ];
    for (const [query, expected] of cases)
      assert.deepEqual(await messages(store, query), expected, JSON.stringify(query));
  });

  test("a line that a crash tore is passed over, and the next one stands on its own", async () => {
    const store = open("torn");
    store.append(tag(), [line("whole"), line("torn in the middle")]);
    await store.flush();
    const [file = ""] = globSync(join(dir, "torn/**/*.log"));
    truncateSync(file, statSync(file).size - 20);
    const next = open("torn");
    assert.deepEqual(await messages(next), ["whole"]);
    next.append(tag(), [line("after")]);
    assert.deepEqual(await messages(next), ["after", "whole"]);
    appendFileSync(file, "\0\0\0 garbage \xff\n\n{}\n");
    assert.deepEqual(await messages(open("torn")), ["after", "whole"]);
  });

  test("time goes on where it was, also after a step of the clock back", async () => {
    const store = open("clock");
    store.append(tag(), [line("before")]);
    await store.flush();
    clock.ms = START - 60_000;
    const next = open("clock");
    next.append(tag(), [line("after")]);
    clock.ms = START;
    assert.deepEqual(await messages(next), ["after", "before"]);
  });

  test("one log has a bound in bytes: the oldest segments go", async () => {
    const store = open("bytes", { workloadBytes: 2 * SEGMENT_BYTES_MAX });
    const filler = "x".repeat(10_000);
    for (let round = 0; round < 8; round++) {
      store.append(
        tag(),
        Array.from({ length: 200 }, (_, n) => line(`${round}/${n} ${filler}`)),
      );
      await store.flush();
    }
    const bytes = globSync(join(dir, "bytes/**/*.log")).reduce((sum, file) => sum + statSync(file).size, 0);
    assert.ok(bytes <= 3 * SEGMENT_BYTES_MAX, String(bytes));
    const { lines, total } = await store.query(ask({ limit: 1 }));
    assert.match(lines[0]?.message ?? "", /^7\/199 /);
    assert.ok(total < 1600 && total >= 400, String(total));
    assert.equal((await open("bytes").query(ask({ limit: 1 }))).total, total, "and the next life finds the same");
  });

  test("a sweep removes what is old, then the oldest of all when there is too much", async () => {
    const store = open("sweep", { ageMs: DAY_MS, totalBytes: 1000 });
    for (const name of ["old", "first", "second"]) store.append(tag(name), [line(name.repeat(100))]);
    await store.flush();
    const at = (name: string, ms: number): void => {
      for (const file of globSync(join(dir, `sweep/main/agents/${name}/*.log`))) utimesSync(file, ms / 1000, ms / 1000);
    };
    at("old", START - 2 * DAY_MS);
    at("first", START - 2000);
    at("second", START - 1000);
    const next = open("sweep", { ageMs: DAY_MS, totalBytes: 1000 });
    await next.sweep();
    assert.deepEqual(await next.names("main", "agents"), ["second"]);
    assert.equal((await messages(next, { name: "second" })).length, 1);
  });

  test("whoever writes faster than the disk loses lines, and a line says how many", async () => {
    const store = open("pending", { pendingBytes: 5000 });
    store.append(
      tag(),
      Array.from({ length: 100 }, (_, n) => line(`line ${n}`)),
    );
    const [last = "", ...kept] = await messages(store);
    assert.match(last, /^\d+ lines were dropped/);
    assert.equal(Number.parseInt(last, 10) + kept.length, 100);
  });

  test("a flood takes lines from the workspace that writes it, and from no other", async () => {
    const store = open("fair-pending", { pendingBytes: 20_000 });
    const flood = Array.from({ length: 1000 }, (_, n) => line(`line ${n}`));
    for (const name of ["a", "b", "c"]) store.append(tag(name, { workspace: "noisy" }), flood);
    store.append(tag("echo", { workspace: "calm" }), [line("one"), line("two")]);
    assert.deepEqual(await messages(store, { workspace: "calm" }), ["two", "one"]);
    assert.match((await messages(store, { workspace: "noisy", name: "c" }))[0] ?? "", /lines were dropped/);
  });

  test("a sweep takes room from the workspace that has most of it", async () => {
    const store = open("fair-sweep", { totalBytes: 3000 });
    const names = Array.from({ length: 20 }, (_, n) => `flood-${n}`);
    for (const name of names) store.append(tag(name, { workspace: "noisy" }), [line("x".repeat(500))]);
    store.append(tag("echo", { workspace: "calm" }), [line("old and small")]);
    await store.flush();
    for (const file of globSync(join(dir, "fair-sweep/calm/**/*.log"))) utimesSync(file, START / 1000, START / 1000);
    const next = open("fair-sweep", { totalBytes: 3000 });
    await next.sweep();
    assert.deepEqual(await messages(next, { workspace: "calm" }), ["old and small"]);
    const left = await next.names("noisy", "agents");
    assert.ok(left.length > 0 && left.length < 10, String(left.length));
  });

  test("names cannot lead out of the folder, and a workspace goes whole", async () => {
    const store = open("names");
    for (const name of ["..", ".", "a/../../b", "%2e%2e", "ü"]) {
      store.append(tag(name, { workspace: "gone" }), [line(name)]);
      assert.deepEqual(await messages(store, { workspace: "gone", name }), [name]);
    }
    store.append(tag("stays"), [line("here")]);
    await store.forgetWorkspace("gone");
    assert.deepEqual(await store.names("gone", "agents"), []);
    assert.deepEqual(readdirSync(join(dir, "names")), ["main"]);
  });
});
