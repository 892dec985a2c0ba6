import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ID_COUNT } from "../workload/launch-program.ts";
import { UserIds } from "./user-ids.ts";

function makeFolders(t: TestContext): (name: string) => string {
  const root = mkdtempSync(join(tmpdir(), "berth-ids-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  return (name) => {
    mkdirSync(join(root, name), { recursive: true });
    return join(root, name);
  };
}

const SLOTS = [0, 1, 63, 64, 200];
const rangesOf = (ids: UserIds): number[] => [ids.trial, ids.unpack, ...SLOTS.map((slot) => ids.ofSlot(slot))];

test("nodes have ranges of their own, which do not overlap", (t) => {
  const folder = makeFolders(t);
  const nodes = ["a", "b", "c"].map((name) => new UserIds(folder(name), folder("shared")));
  const starts = nodes.flatMap(rangesOf).sort((a, b) => a - b);
  for (const [index, start] of starts.entries()) {
    if (index > 0) assert.ok(start - (starts[index - 1] ?? 0) >= ID_COUNT, `${starts}`);
    assert.ok(start + ID_COUNT <= 0x7000_0000);
  }
});

test("a node has the same ranges in its next run, until it gives them back", (t) => {
  const folder = makeFolders(t);
  const [a, shared] = [folder("a"), folder("shared")];
  const ids = new UserIds(a, shared);
  const ranges = rangesOf(ids);
  const other = new UserIds(folder("b"), shared);
  assert.deepEqual(rangesOf(new UserIds(a, shared)), ranges);
  ids.release();
  assert.equal(new UserIds(folder("c"), shared).ofSlot(0), ranges[SLOTS.indexOf(0) + 2]);
  assert.notEqual(other.ofSlot(0), ranges[2]);
});

test("the blocks of a folder that is gone are given to other nodes, also to a new folder of the same name", (t) => {
  const folder = makeFolders(t);
  const shared = folder("shared");
  for (let round = 0; round < 3; round++) {
    const dir = folder("again");
    assert.ok(new UserIds(dir, shared).ofSlot(50 * 64) > 0);
    rmSync(dir, { recursive: true });
  }
});

test("a machine that has no block left says so", (t) => {
  const folder = makeFolders(t);
  const [one, other] = ["one", "other"].map((name) => new UserIds(folder(name), folder("shared")));
  assert.throws(() => one?.ofSlot(63 * 64), { code: "unavailable" });
  assert.ok(one?.ofSlot(40 * 64));
  assert.throws(() => other?.ofSlot(40 * 64), { code: "unavailable" });
  assert.ok(other?.ofSlot(10 * 64));
});
