import { notFound } from "../../contract/errors.ts";
import { LIMIT_DEFAULT, LIMIT_MAX, type Sort, searchWord } from "../../contract/list-query.ts";
import { isOn, triggerNamed } from "../../contract/triggers.ts";
import type { ExecutionRow } from "../../store/executions/execution.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { executionDataHandler } from "./execution-data.ts";
import { executionToWire, tasksToWire } from "./execution-wire.ts";
import { createExecution } from "./executions.ts";
import { gridOf } from "./grid.ts";
import {
  EXECUTIONS_LIMIT,
  type ExecutionWire,
  executionCancel,
  executionCreate,
  executionGet,
  executionList,
  executionRerun,
  INLINE_TASKS_MAX,
  INLINE_UNASKED_MAX,
  taskGrid,
  taskList,
} from "./operations.ts";
import { argumentsAgain } from "./rerun.ts";
import { asTriggered } from "./triggered.ts";

export const executionHandlers: readonly Implementation[] = [
  implement(executionCreate, async (call, deps) => {
    const job = await jobOf(call, deps);
    const trigger = call.query.trigger === undefined ? null : httpTriggerOf(job, call.query.trigger);
    const { tasks = trigger?.tasks ?? [{}], env, memory, executionId, allowQueue } = call.body ?? {};
    const row = await createExecution(
      job,
      {
        cause: "api",
        ...trigger,
        ...{ tasks, env, memory, allowQueue },
        slot: executionId === undefined ? null : clientSlot(job, executionId),
        createdBy: call.caller.displayName,
      },
      deps,
    );
    return createdToWire(row, job, tasks);
  }),

  implement(executionRerun, async (call, deps) => {
    const job = await jobOf(call, deps);
    const before = await executionOf(call, deps);
    const { statuses = ["failed" as const], executionId, allowQueue } = call.body ?? {};
    const tasks = await argumentsAgain(before, statuses, deps);
    const row = await createExecution(
      job,
      {
        cause: "api",
        ...{ tasks, allowQueue, env: deps.store.executions.envOf(before) },
        ...(before.memory_override === null ? {} : { memory: before.memory_override }),
        ...{ maxRetries: before.max_retries, timeoutS: before.timeout_s },
        slot: executionId === undefined ? null : clientSlot(job, executionId),
        createdBy: call.caller.displayName,
      },
      deps,
    );
    return createdToWire(row, job, tasks);
  }),

  implement(executionList, async (call, deps) => {
    const job = await jobOf(call, deps);
    const { cursor, offset, sort } = call.query;
    const limit = Math.min(call.query.limit ?? EXECUTIONS_LIMIT.limitDefault, EXECUTIONS_LIMIT.limitMax);
    const { executions } = deps.store;
    const total = await executions.countOf(job.workspace, job.uid);
    if (offset !== undefined && !cursor) {
      const rows = await executions.listFrom(job.workspace, job.uid, offset, limit);
      const hasMore = offset + rows.length < total && rows.length > 0;
      return { data: rows.map((row) => toWire(row, deps)), meta: { hasMore, nextCursor: "", total } };
    }
    const page = await executions.list(job.workspace, job.uid, {
      limit,
      cursor: cursor || null,
      ascending: isAscending(sort),
      q: searchWord(call.query.q),
    });
    const { hasMore, nextCursor } = page;
    return { data: page.items.map((row) => toWire(row, deps)), meta: { hasMore, nextCursor, total } };
  }),

  implement(executionGet, async (call, deps) => {
    const row = await executionOf(call, deps);
    const wire = toWire(row, deps);
    if (!(call.query.inlineTasks ?? row.total <= INLINE_UNASKED_MAX)) return wire;
    const count = Math.min(row.total, INLINE_TASKS_MAX);
    const places = Array.from({ length: count }, (_, index) => index);
    const tasks = tasksToWire(row, await deps.store.executions.tasksOf(row.id, 0, count), places);
    return { ...wire, spec: { ...wire.spec, tasks }, tasks };
  }),

  implement(executionCancel, async (call, deps) => {
    const { id, workspace } = await executionOf(call, deps);
    const row = await deps.store.executions.cancel(workspace, id, deps.settings.executionsKeptMs);
    if (!row) throw notFound(`Execution '${id}'`);
    return toWire(row, deps);
  }),

  implement(taskList, async (call, deps) => {
    const row = await executionOf(call, deps);
    const limit = Math.min(call.query.limit ?? LIMIT_DEFAULT, LIMIT_MAX);
    const { sort = "createdAt:asc" } = call.query;
    const q = searchWord(call.query.q);
    const bound = { list: "tasks", execution: row.id, ascending: isAscending(sort), q: q ?? "" };
    const { cursors, executions } = deps.store;
    const [after] = call.query.cursor ? cursors.decode(call.query.cursor, bound, deps.clock.now()) : [];
    const { places, next } = taskPage(row.total, typeof after === "number" ? after : 0, limit, bound);
    const data = tasksToWire(row, await executions.tasksAt(row.id, places), places);
    const nextCursor = next === null ? "" : cursors.encode([next], bound, deps.clock.now());
    return { data, meta: { hasMore: next !== null, nextCursor, total: row.total } };
  }),

  implement(taskGrid, async (call, deps) => {
    const { since, times = false } = call.query;
    return gridOf(await executionOf(call, deps), { sinceMs: since ?? null, withTimes: times }, deps);
  }),

  executionDataHandler,
];

const createdToWire = (row: ExecutionRow, job: Resource, tasks: readonly unknown[]) => ({
  executionId: row.id,
  id: row.id,
  jobId: job.name,
  workspaceId: job.workspace,
  ...(tasks.length <= INLINE_TASKS_MAX ? { tasks: [...tasks] } : {}),
});

const isAscending = (sort: Sort | undefined): boolean => sort?.endsWith(":asc") === true;

/** The task indexes of a page, and the next offset when there are more. */
function taskPage(
  total: number,
  from: number,
  limit: number,
  { ascending, q }: { ascending: boolean; q: string },
): { places: number[]; next: number | null } {
  const places: number[] = [];
  for (let passed = from; passed < total; passed += 1) {
    const place = ascending ? passed : total - 1 - passed;
    if (!String(place).includes(q)) continue;
    if (places.length === limit) return { places, next: passed };
    places.push(place);
  }
  return { places, next: null };
}

/** A client's own name of an execution is unique within its job. */
const clientSlot = (job: Resource, executionId: string): string => `client/${job.uid}/${executionId}`;

function httpTriggerOf(job: Resource, id: string): ReturnType<typeof asTriggered> {
  const trigger = triggerNamed(job, id);
  if (!trigger || trigger.type === "cron" || !isOn(trigger)) throw notFound(`Trigger '${id}' of job '${job.name}'`);
  return asTriggered(trigger);
}

async function jobOf(call: Pick<Call, "workspace" | "operation" | "params">, deps: Platform): Promise<Resource> {
  const { jobId = "" } = call.params;
  const scope = { workspace: workspaceOf(call).name, kind: "job", parent: "" };
  const job = await deps.store.resources.get(scope, jobId);
  if (!job || job.deletedAt !== null) throw notFound(`Job '${jobId}'`);
  return job;
}

/** Finds an execution by the platform's id or by the client's own name for it. */
async function executionOf(
  call: Pick<Call, "workspace" | "operation" | "params">,
  deps: Platform,
): Promise<ExecutionRow> {
  const job = await jobOf(call, deps);
  const { executionId = "" } = call.params;
  const { executions } = deps.store;
  const row =
    (await executions.get(job.workspace, executionId)) ??
    (await executions.getBySlot(job.workspace, clientSlot(job, executionId)));
  if (row?.job_uid !== job.uid) throw notFound(`Execution '${executionId}'`);
  return row;
}

const toWire = (row: ExecutionRow, deps: Platform): ExecutionWire =>
  executionToWire(row, {
    envNames: Object.keys(deps.store.executions.envOf(row)),
    region: deps.settings.region,
  });
