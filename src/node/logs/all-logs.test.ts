import assert from "node:assert/strict";
import { test } from "node:test";
import { createAllLogs } from "./all-logs.ts";
import type { LogLine, StoredLine } from "./log-line.ts";
import type { Logs } from "./log-room.ts";
import type { LogPage, LogQuery } from "./log-store.ts";

const LINE: Omit<LogLine, "message"> = { severity: 9 };
const lineAt = (timeUs: number): StoredLine =>
  ({ ...LINE, timeUs, message: String(timeUs), source: "run" }) as StoredLine;

/** A node whose log has lines at these times. */
const pageOf = (times: number[], { offset = 0, limit }: LogQuery): LogPage => {
  const lines = times
    .toSorted((a, b) => b - a)
    .slice(offset, offset + limit)
    .map(lineAt);
  return { lines, total: times.length, bytes: 0, cut: false };
};

const logsOf = (times: number[]): Logs => ({
  append: () => assert.fail(),
  query: async (query) => pageOf(times, query),
  names: async () => ["a", "b"],
  forgetWorkspace: () => assert.fail(),
});

const QUERY: LogQuery = { workspace: "w", plural: "agents", name: "a", fromMs: 0, toMs: 9, limit: 3 };

test("lines of several nodes are merged newest first, page by page, and a node that is away is named", async () => {
  const nodes: Record<string, number[] | null> = { two: [2, 4, 6], three: [], away: null };
  const all = createAllLogs(logsOf([1, 3, 5]), () => "one", {
    nodes: () => Object.keys(nodes).map((id) => ({ id, name: `name of ${id}` })),
    query: async (id, query) => pageOf(nodes[id] ?? assert.fail("away"), query),
    names: async (id) => (nodes[id] ? ["b", "c"] : assert.fail("away")),
  });
  const first = await all.query(QUERY);
  assert.deepEqual(
    first.lines.map(({ timeUs }) => timeUs),
    [6, 5, 4],
  );
  assert.deepEqual([first.total, first.servers, first.missing], [6, ["one", "name of two"], ["name of away"]]);
  const second = await all.query({ ...QUERY, offset: 3 });
  assert.deepEqual(
    second.lines.map(({ timeUs }) => timeUs),
    [3, 2, 1],
  );
  const bounded = await all.query({ ...QUERY, bytesMax: 1 });
  assert.deepEqual([bounded.lines.length, bounded.cut], [1, true]);
  await assert.rejects(all.query({ ...QUERY, offset: 1_000_000 }), { code: "bad_request" });
  assert.deepEqual(await all.names("w", "agents"), ["a", "b", "c"]);
});

test("lines of one node are that node's own page, however far back", async () => {
  const all = createAllLogs(logsOf([]), () => "one", {
    nodes: () => [{ id: "two", name: "two" }],
    query: async (_id, { offset }) => ({ lines: [], total: Number(offset), bytes: 0, cut: false }),
    names: async () => [],
  });
  assert.deepEqual((await all.query({ ...QUERY, offset: 900_000 })).servers, ["two"]);
  const alone = createAllLogs(logsOf([7]), () => "one", null);
  assert.deepEqual((await alone.query(QUERY)).servers, ["one"]);
});

test("a node's page that was cut leaves no gap in the merged lines", async () => {
  const asked: LogQuery[] = [];
  const all = createAllLogs(logsOf([1, 3, 5]), () => "one", {
    nodes: () => [{ id: "two", name: "two" }],
    query: async (_id, query) => {
      asked.push(query);
      return { ...pageOf([2, 4, 6], { ...query, limit: 1 }), cut: true };
    },
    names: async () => [],
  });
  const { lines, cut } = await all.query(QUERY);
  assert.deepEqual([lines.map(({ timeUs }) => timeUs), cut], [[6], true]);
  assert.ok(
    asked.every(({ bytesMax }, at) => at === 0 || bytesMax !== undefined),
    "every page is bounded",
  );
  await assert.rejects(all.query({ ...QUERY, offset: 2 }), { code: "bad_request", message: /Narrow/ });
});
