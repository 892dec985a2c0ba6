/** Executions of jobs and their tasks. */
import { type GridAnswer, isOver, type TaskGrid, withAnswer } from "../lib/task-grid.ts";
import { call } from "./call.ts";
import { queries, useAnswer } from "./query.ts";

export interface Execution {
  metadata: {
    id: string;
    revision: string;
    /** The trigger that started it. */
    trigger?: string;
    createdAt: string;
    startedAt?: string;
    completedAt?: string;
  };
  spec: { parallelism: number; timeout: number };
  status: string;
  stats: { total: number; success: number; failure: number; cancelled: number; running: number; retried: number };
}

export interface Task {
  metadata: { name: string; startedAt?: string; completedAt?: string };
  status: string;
  conditions: readonly { message: string; reason: string }[];
}

export interface Job {
  workspace: string;
  name: string;
}

const EVERY_MS = 2000;
/** The grid asks for changes only, which is cheap. */
const GRID_EVERY_MS = 1000;
const NEVER_MS = 24 * 3_600_000;

const pathOf = ({ name }: Job, id?: string): string =>
  `/jobs/${encodeURIComponent(name)}/executions${id === undefined ? "" : `/${encodeURIComponent(id)}`}`;
const keyOf = ({ workspace, name }: Job): readonly unknown[] => ["executions", workspace, name];

const executionsChanged = (job: Job): Promise<void> => queries.invalidateQueries({ queryKey: keyOf(job) });

export const useExecutions = (job: Job) =>
  useAnswer({
    key: [...keyOf(job), "list"],
    everyMs: EVERY_MS,
    ask: async (signal) =>
      (await call<{ data: Execution[] }>({ path: pathOf(job), workspace: job.workspace, signal })).data,
  });

export const useExecution = (job: Job, id: string) =>
  useAnswer<Execution>({
    key: [...keyOf(job), "one", id],
    everyMs: (last) => (last?.metadata.completedAt === undefined ? EVERY_MS : NEVER_MS),
    ask: (signal) => call({ path: pathOf(job, id), query: { inlineTasks: "false" }, workspace: job.workspace, signal }),
  });

/** Asked for whole once, then for what changed. */
export function useTaskGrid(job: Job, id: string, times: boolean) {
  const key = [...keyOf(job), "grid", id, times];
  return useAnswer<TaskGrid>({
    key,
    everyMs: (last) => (last && isOver(last) ? NEVER_MS : GRID_EVERY_MS),
    ask: async (signal) => {
      const before = queries.getQueryData<TaskGrid>(key);
      const query = { since: before?.version ?? "", times: times ? "true" : "" };
      return withAnswer(
        before,
        await call<GridAnswer>({ path: `${pathOf(job, id)}/tasks/grid`, query, workspace: job.workspace, signal }),
      );
    },
  });
}

/** One task. The list has no place for a single number, but the smallest number with these digits is the number itself. */
export const useTask = (job: Job, id: string, index: number, state: string) =>
  useAnswer({
    key: [...keyOf(job), "task", id, index, state],
    ask: async (signal) => {
      const word = String(index);
      const query = word.length < 2 ? { limit: String(index + 1) } : { q: word, limit: "1" };
      const { data } = await call<{ data: Task[] }>({
        ...{ path: `${pathOf(job, id)}/tasks`, query, workspace: job.workspace, signal },
      });
      return data.at(-1) ?? null;
    },
  });

export async function runTasks(job: Job, tasks: unknown): Promise<string> {
  const made = await call<{ executionId: string }>({
    ...{ method: "POST", path: pathOf(job), body: { tasks }, workspace: job.workspace },
  });
  await executionsChanged(job);
  return made.executionId;
}

export async function rerunFailed(job: Job, id: string): Promise<string> {
  const made = await call<{ executionId: string }>({
    ...{ method: "POST", path: `${pathOf(job, id)}/rerun`, body: {}, workspace: job.workspace },
  });
  await executionsChanged(job);
  return made.executionId;
}

export async function cancelExecution(job: Job, id: string): Promise<void> {
  await call({ method: "DELETE", path: pathOf(job, id), workspace: job.workspace });
  await executionsChanged(job);
}
