/** The tasks of an execution, one letter each, as the server tells them: all at first, then those that changed. */
export const STATES = ["failed", "running", "retrying", "pending", "succeeded", "cancelled"] as const;
export type TaskState = (typeof STATES)[number];

export const LETTERS: Readonly<Record<string, TaskState>> = {
  ...{ p: "pending", r: "running", t: "retrying", s: "succeeded", f: "failed", c: "cancelled" },
};

interface Times {
  index: readonly number[];
  start?: readonly (number | null)[];
  end?: readonly (number | null)[];
}

export interface GridAnswer {
  status: string;
  total: number;
  version: string;
  counts: Readonly<Record<TaskState, number>>;
  unstarted: string;
  tasks?: string;
  changed?: Times & { tasks: string };
  started?: Times;
}

export interface TaskGrid {
  status: string;
  total: number;
  version: string;
  counts: Readonly<Record<TaskState, number>>;
  /** The letter of each task. */
  tasks: string;
  /** Milliseconds from the creation of the execution, where they were asked for; -1 = not yet. */
  starts: Int32Array;
  ends: Int32Array;
}

export const stateAt = ({ tasks }: TaskGrid, index: number): TaskState => LETTERS[tasks.charAt(index)] ?? "pending";

export function withAnswer(before: TaskGrid | undefined, answer: GridAnswer): TaskGrid {
  const { status, total, version, counts, tasks, changed, started } = answer;
  const starts = before?.starts.slice() ?? new Int32Array(total).fill(-1);
  const ends = before?.ends.slice() ?? new Int32Array(total).fill(-1);
  for (const { index, start, end } of [started, changed].filter((one) => one !== undefined))
    for (const [at, task] of index.entries()) {
      starts[task] = start?.[at] ?? -1;
      ends[task] = end?.[at] ?? -1;
    }
  const letters = tasks ?? patched(before?.tasks ?? "".padEnd(total, answer.unstarted), changed, answer.unstarted);
  return { status, total, version, counts, tasks: letters, starts, ends };
}

/** Tasks that have not started are in no list of changes: their letter follows the execution. */
function patched(tasks: string, changed: GridAnswer["changed"], unstarted: string): string {
  const letters = [...(unstarted === "c" ? tasks.replaceAll("p", "c") : tasks)];
  for (const [at, task] of (changed?.index ?? []).entries()) letters[task] = changed?.tasks.charAt(at) ?? "p";
  return letters.join("");
}

/** The next task from here that is in a state; of any state with null. */
export function nextTask(grid: TaskGrid, from: number, step: number, state: TaskState | null): number | null {
  for (let at = from + step; at >= 0 && at < grid.total; at += state === null ? step : Math.sign(step))
    if (state === null || stateAt(grid, at) === state) return at;
  return null;
}

const FINAL = ["succeeded", "failed", "cancelled", "timeout"];

export const isOver = ({ status }: Pick<TaskGrid, "status">): boolean => FINAL.includes(status);
