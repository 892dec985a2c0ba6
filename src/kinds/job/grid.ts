/** An execution as a grid: one letter for each task, and what changed since the last look. */
import type { z } from "zod";
import { SECOND_MS } from "../../lib/time/clock.ts";
import type { ExecutionRow, TaskStatus } from "../../store/executions/execution.ts";
import type { GridColumns } from "../../store/executions/grid.ts";
import type { Platform } from "../port.ts";
import { GRID_LETTERS, type taskGrid } from "./operations.ts";

type Grid = z.input<typeof taskGrid.response>;

/** More changes than this are told as the whole grid. */
const CHANGES_MAX = 10_000;
/**
 * The next look begins this long before this one: the clocks of servers differ a little, and a change is stamped before
 * it is committed. A task that is told twice does no harm.
 */
const OVERLAP_MS = 5 * SECOND_MS;

export interface GridAsked {
  /** The version of the last answer; null = the whole grid. */
  sinceMs: number | null;
  withTimes: boolean;
}

export async function gridOf(row: ExecutionRow, asked: GridAsked, { store, clock }: Platform): Promise<Grid> {
  const nowMs = clock.now();
  const { executions } = store;
  const changed = asked.sinceMs === null ? null : await executions.changedTasks(row.id, asked.sinceMs, CHANGES_MAX);
  const unstarted = row.status === "cancelling" || row.completed_at !== null ? "cancelled" : "pending";
  const { running, retrying, success: succeeded, failure: failed, cancelled, total } = row;
  const pending = total - running - retrying - succeeded - failed - cancelled;
  const common = {
    executionId: row.id,
    status: row.status,
    total,
    version: String(Math.max(0, nowMs - OVERLAP_MS)),
    counts: { pending, running, retrying, succeeded, failed, cancelled },
    unstarted: GRID_LETTERS[unstarted],
  };
  const since = (ms: number | null): number | null => (ms === null ? null : ms - row.created_at);
  const timesOf = (start: readonly (number | null)[], end: readonly (number | null)[]) =>
    asked.withTimes ? { start: start.map(since), end: end.map(since) } : {};
  if (changed) {
    const times = timesOf(
      changed.map((task) => task.started_at),
      changed.map((task) => task.completed_at),
    );
    return { ...common, changed: { index: changed.map(({ idx }) => idx), tasks: lettersOf(changed), ...times } };
  }
  const columns = await executions.gridOf(row.id, GRID_LETTERS, asked.withTimes);
  const { index } = columns;
  const times = timesOf(columns.startedAt, columns.completedAt);
  const tasks = placed(columns, total, common.unstarted);
  return { ...common, tasks, ...(asked.withTimes ? { started: { index, ...times } } : {}) };
}

/** The letters of all tasks: those that have a row where they belong, the others filled in. */
function placed({ index, letters }: Pick<GridColumns, "index" | "letters">, total: number, filler: string): string {
  if ((index.at(-1) ?? -1) + 1 === index.length) return letters.padEnd(total, filler);
  const all = Array.from({ length: total }, () => filler);
  for (const [n, at] of index.entries()) all[at] = letters.charAt(n);
  return all.join("");
}

const lettersOf = (rows: readonly { status: TaskStatus }[]): string =>
  rows.map(({ status }) => GRID_LETTERS[status]).join("");
