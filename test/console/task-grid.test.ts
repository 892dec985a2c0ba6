import assert from "node:assert/strict";
import { test } from "node:test";
import { layoutOf, taskAt } from "../../console/lib/grid-layout.ts";
import { type GridAnswer, nextTask, stateAt, withAnswer } from "../../console/lib/task-grid.ts";

const answer = (more: Partial<GridAnswer>): GridAnswer => ({
  ...{ status: "running", total: 5, version: "1", unstarted: "p" },
  counts: { pending: 0, running: 0, retrying: 0, succeeded: 0, failed: 0, cancelled: 0 },
  ...more,
});

test("a grid takes changes, and cancels what never started", () => {
  const first = withAnswer(undefined, answer({ tasks: "srrpp", started: { index: [0], start: [10], end: [20] } }));
  const changed = { index: [1, 2], tasks: "ft", start: [30, 31], end: [40, null] };
  const second = withAnswer(first, answer({ version: "2", changed }));
  assert.equal(second.tasks, "sftpp");
  assert.deepEqual([...second.starts], [10, 30, 31, -1, -1]);
  assert.deepEqual([...second.ends], [20, 40, -1, -1, -1]);
  assert.equal(first.tasks, "srrpp", "the first answer stays as it was");
  const last = withAnswer(second, answer({ status: "cancelled", unstarted: "c", changed: { index: [], tasks: "" } }));
  assert.equal(last.tasks, "sftcc");
  assert.equal(stateAt(last, 2), "retrying");
  assert.deepEqual([nextTask(last, -1, 1, "cancelled"), nextTask(last, 4, -1, "failed")], [3, 1]);
  assert.equal(nextTask(last, 4, 1, "failed"), null);
});

test("every task has a cell of its own, from one to 100,000, on any screen", () => {
  for (const total of [1, 7, 900, 100_000])
    for (const roomPx of [320, 1000, 2400]) {
      const layout = layoutOf(total, roomPx);
      assert.ok(layout.widthPx <= roomPx && layout.columns * layout.rows >= total);
      for (const task of [0, Math.floor(total / 2), total - 1]) {
        const [x, y] = [(task % layout.columns) * layout.cellPx, Math.floor(task / layout.columns) * layout.cellPx];
        assert.equal(taskAt(layout, total, x + 1, y + 1), task);
      }
      assert.equal(taskAt(layout, total, roomPx + layout.cellPx, 0), null);
    }
});
