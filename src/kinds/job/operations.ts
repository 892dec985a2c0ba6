/** Executions of jobs: a list of tasks that is run once. */
import { z } from "zod";
import { pageMeta, SORTS } from "../../contract/list-query.ts";
import { defineOperation, type Operation } from "../../contract/operation.ts";
import { job } from "./kind.ts";

/** Tasks of one execution. Split larger work into several executions. */
export const TASKS_MAX = 100_000;
/** Room for TASKS_MAX tasks of some hundred bytes each. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Tasks shown inside an execution, for clients older than the separate task list. */
export const INLINE_TASKS_MAX = 1000;
/** Executions up to this size show their tasks by default; larger ones only with `inlineTasks`. */
export const INLINE_UNASKED_MAX = 200;
export const EXECUTIONS_LIMIT = { limitDefault: 20, limitMax: 100 };
const OFFSET_MAX = 1_000_000;
const ENVS_MAX = 1000;

const STATUSES = ["queued", "pending", "running", "cancelling", "cancelled", "failed", "succeeded", "timeout"] as const;
const TASK_STATUSES = ["unspecified", "pending", "reconciling", "failed", "succeeded", "running", "cancelled"] as const;

const task = z.object({
  metadata: z.object({
    name: z.string().describe("The index of the task."),
    createdAt: z.string(),
    scheduledAt: z.string().optional(),
    startedAt: z.string().optional(),
    completedAt: z.string().optional(),
    updatedAt: z.string(),
  }),
  spec: z.object({ maxRetries: z.int(), timeout: z.string() }),
  status: z.enum(TASK_STATUSES),
  conditions: z.array(
    z.object({
      type: z.string(),
      state: z.string(),
      reason: z.string(),
      executionReason: z.string(),
      message: z.string(),
      severity: z.string(),
    }),
  ),
});

const execution = z.object({
  metadata: z.object({
    id: z.string(),
    job: z.string(),
    workspace: z.string(),
    cluster: z.string(),
    revision: z.string().describe("The revision of the job that its tasks run."),
    trigger: z.string().optional().describe("The trigger that started it; absent when a request did."),
    createdAt: z.string(),
    updatedAt: z.string(),
    startedAt: z.string().optional(),
    completedAt: z.string().optional(),
    expiredAt: z.string().optional(),
  }),
  spec: z.object({
    envOverride: z.string().optional().describe("A JSON map; its values are masked."),
    memoryOverride: z.int().optional(),
    parallelism: z.int(),
    timeout: z.int(),
    tasks: z.array(task).optional(),
  }),
  status: z.enum(STATUSES),
  stats: z.object({
    total: z.int(),
    success: z.int(),
    failure: z.int(),
    cancelled: z.int(),
    retried: z.int(),
    running: z.int(),
  }),
  tasks: z.array(task).optional(),
});

export type ExecutionWire = z.input<typeof execution>;
export type TaskWire = z.input<typeof task>;

const shared = { tenancy: "workspace", role: "member", kind: job.name } as const;
const collection = `${job.itemPath}/executions`;
const item = `${collection}/{executionId}`;
const limit = z.coerce.number().int().min(1).optional();
const cursor = z.string().optional();
/** Ids are ordered by time, and tasks by number, so a name sorts like the time. */
const sort = z.enum(SORTS).optional();
const q = z.string().optional();

const executionName = z
  .string()
  .regex(/^[\w.:-]{1,128}$/, "must be letters, digits, '.', '_', ':' and '-', at most 128")
  .optional()
  .describe("A name of your own: the same again answers with the same execution.");
const allowQueue = z.boolean().optional().describe("Default true; false = 429 when the tasks would have to wait.");
const created = z.object({
  executionId: z.string(),
  id: z.string(),
  jobId: z.string(),
  workspaceId: z.string(),
  tasks: z.array(z.unknown()).optional(),
});

export const executionCreate = defineOperation({
  ...shared,
  id: "jobExecutionCreate",
  method: "POST",
  path: collection,
  summary: "Run tasks of a job",
  scope: "jobs:create",
  query: z.object({
    trigger: z
      .string()
      .max(128)
      .optional()
      .describe("Id of a trigger of the job: its tasks unless others are given, its retry, timeout and callback."),
  }),
  body: z.looseObject({
    tasks: z
      .array(z.record(z.string(), z.unknown()))
      .min(1)
      .max(TASKS_MAX)
      .optional()
      .describe("Arguments, one object for each task; absent = one task without any."),
    env: z
      .record(z.string().min(1).max(256), z.string().max(128 * 1024))
      .refine((env) => Object.keys(env).length <= ENVS_MAX, `must not have more than ${ENVS_MAX} variables`)
      .optional(),
    memory: z.int().positive().optional().describe("MB of each task; not above the job's."),
    executionId: executionName,
    allowQueue,
  }),
  bodyOptional: true,
  bodyBytesMax: BODY_BYTES_MAX,
  response: created,
});

export const executionRerun = defineOperation({
  ...shared,
  id: "jobExecutionRerun",
  method: "POST",
  path: `${item}/rerun`,
  summary: "Run the failed tasks of an execution again, as a new execution with the job's active revision",
  scope: "jobs:create",
  body: z.looseObject({
    statuses: z
      .array(z.enum(["failed", "cancelled", "succeeded"]))
      .min(1)
      .optional()
      .describe("Which tasks; `failed` when left out."),
    executionId: executionName,
    allowQueue,
  }),
  bodyOptional: true,
  response: created,
});

export const executionList = defineOperation({
  ...shared,
  id: "jobExecutionList",
  method: "GET",
  path: collection,
  summary: "List the executions of a job",
  scope: "jobs:list",
  query: z.object({
    cursor,
    limit: limit.describe("1 to 100, default 20; more is clamped."),
    offset: z.coerce.number().int().min(0).max(OFFSET_MAX).optional().describe("Instead of a cursor."),
    sort,
    q: q.describe("Part of the id, or of the name that the client gave it; at least 2 characters."),
  }),
  response: z.object({ data: z.array(execution), meta: pageMeta }),
  paged: true,
});

export const executionGet = defineOperation({
  ...shared,
  id: "jobExecutionGet",
  method: "GET",
  path: item,
  summary: "Read one execution of a job",
  scope: "jobs:get",
  query: z.object({
    inlineTasks: z
      .stringbool()
      .optional()
      .describe(
        `Whether to show the first ${INLINE_TASKS_MAX} tasks as well; left out: all of them, up to ${INLINE_UNASKED_MAX}.`,
      ),
  }),
  response: execution,
});

export const executionCancel = defineOperation({
  ...shared,
  id: "jobExecutionDelete",
  method: "DELETE",
  path: item,
  summary: "Cancel an execution: what has not started never will, what runs may finish",
  scope: "jobs:delete",
  response: execution,
});

export const taskList = defineOperation({
  ...shared,
  id: "jobExecutionTaskList",
  method: "GET",
  path: `${item}/tasks`,
  summary: "List the tasks of an execution",
  scope: "jobs:get",
  query: z.object({
    cursor,
    limit: limit.describe("1 to 200, default 50; more is clamped."),
    sort: sort.describe("By their numbers; `createdAt:asc` when left out."),
    q: q.describe("Part of the task's number; at least 2 characters."),
  }),
  response: z.object({ data: z.array(task), meta: pageMeta }),
  paged: true,
});

/** The letter of a task in a grid, by its status. */
export const GRID_LETTERS = {
  pending: "p",
  running: "r",
  retrying: "t",
  succeeded: "s",
  failed: "f",
  cancelled: "c",
} as const;

const counted = z.object({
  pending: z.int(),
  running: z.int(),
  retrying: z.int(),
  succeeded: z.int(),
  failed: z.int(),
  cancelled: z.int(),
});
const times = {
  start: z
    .array(z.int().nullable())
    .optional()
    .describe("Milliseconds from the creation of the execution to the start."),
  end: z.array(z.int().nullable()).optional().describe("The same to the end; null for a task that has not ended."),
};

export const taskGrid = defineOperation({
  ...shared,
  id: "jobExecutionTaskGrid",
  method: "GET",
  path: `${item}/tasks/grid`,
  summary: "The status of every task of an execution, one letter each, or of those that changed",
  scope: "jobs:get",
  query: z.object({
    since: z.coerce
      .number()
      .int()
      .min(0)
      .optional()
      .describe("The `version` of an earlier answer: only tasks that changed since, in `changed`."),
    times: z.stringbool().optional().describe("Whether to tell start and end of the tasks."),
  }),
  response: z.object({
    executionId: z.string(),
    status: z.enum(STATUSES),
    total: z.int(),
    version: z.string().describe("For `since` of the next question."),
    counts: counted,
    unstarted: z
      .enum(["p", "c"])
      .describe("The letter of tasks that have not started; they are in no list of changes."),
    tasks: z
      .string()
      .optional()
      .describe(
        "One letter for each task, in order: p pending, r running, t retrying, s succeeded, f failed, c cancelled.",
      ),
    started: z
      .object({ index: z.array(z.int()), ...times })
      .optional()
      .describe("Times of the tasks that have started."),
    changed: z
      .object({ index: z.array(z.int()), tasks: z.string(), ...times })
      .optional()
      .describe("Numbers and letters of the tasks that changed. Absent when many did: `tasks` is there then."),
  }),
});

/** Needs no credentials: the URL holds a secret token and works only while its task runs. */
export const executionData = defineOperation({
  id: "jobExecutionData",
  method: "GET",
  path: `${item}/data/{token}`,
  summary: "What a running task reads its arguments from",
  tenancy: "public",
  scope: null,
  role: "member",
  kind: job.name,
  response: z.object({ tasks: z.array(z.unknown()) }),
});

export const executionOperations: readonly Operation[] = [
  executionCreate,
  executionList,
  executionGet,
  executionCancel,
  executionRerun,
  taskList,
  taskGrid,
  executionData,
];
