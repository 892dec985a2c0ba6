/** Tasks of an execution that run again, as a new execution of the job. */
import { PlatformError } from "../../contract/errors.ts";
import { CHUNK_TASKS, type ExecutionRow } from "../../store/executions/execution.ts";
import type { Platform } from "../port.ts";
import { gridOf } from "./grid.ts";
import { GRID_LETTERS } from "./operations.ts";

type Status = keyof typeof GRID_LETTERS;

/** The arguments of the tasks that have one of these statuses, in order. */
export async function argumentsAgain(
  row: ExecutionRow,
  statuses: readonly Status[],
  deps: Platform,
): Promise<Record<string, unknown>[]> {
  const letters = new Set<string>(statuses.map((status) => GRID_LETTERS[status]));
  const { tasks = "" } = await gridOf(row, { sinceMs: null, withTimes: false }, deps);
  const again: Record<string, unknown>[] = [];
  // Arguments are stored in chunks; a chunk without such a task is not read.
  for (let start = 0; start < row.total; start += CHUNK_TASKS) {
    const part = tasks.slice(start, start + CHUNK_TASKS);
    if (![...part].some((letter) => letters.has(letter))) continue;
    const all = await deps.store.executions.argumentsOf(row.id, start, part.length);
    again.push(...all.filter((_, at) => letters.has(part.charAt(at))));
  }
  if (again.length === 0)
    throw new PlatformError("conflict", `No task of execution '${row.id}' is ${statuses.join(" or ")}.`);
  return again;
}
