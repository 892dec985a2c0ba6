/** Logs: the output of workloads. */
import { z } from "zod";
import { LOGS_SCOPE } from "../../contract/crash-output.ts";
import { LOG_SOURCES, SEVERITY_NAMES } from "../../contract/log-line.ts";
import { defineOperation } from "../../contract/operation.ts";

export const LIMIT_DEFAULT = 1000;
export const LIMIT_MAX = 1000;
/** To read further back, narrow the time range. */
const OFFSET_MAX = 1_000_000;
const WORD_MAX = 256;

const word = z.string().min(1).max(WORD_MAX).optional();
const time = z.string().max(40).optional();

const line = z.object({
  timestamp: z.string().describe("RFC 3339 with nanoseconds; no two lines of a workload have the same."),
  message: z.string(),
  severity: z.int().describe("1 trace, 5 debug, 9 info, 13 warning, 17 error, 21 fatal, 0 unknown."),
  trace_id: z.string(),
  type: z.enum(LOG_SOURCES),
  revision: z.string().optional(),
  execution_id: z.string().optional(),
  task_id: z.string().optional(),
  attributes: z.record(z.string(), z.unknown()).optional().describe("What a structured line says beside that."),
});

const subject = {
  resourceType: z
    .string()
    .min(1)
    .max(WORD_MAX)
    .describe("A kind in the plural: agents, functions, applications, jobs or sandboxes; images for their builds."),
  workloadIds: z
    .string()
    .max(8192)
    .optional()
    .describe("Names or ids of workloads, separated by commas; all of the kind when absent."),
};

const narrowing = {
  type: z
    .enum(["all", ...LOG_SOURCES])
    .optional()
    .describe("Only what builds (`build`) or running code (`run`) wrote; `all` when absent."),
  severity: z
    .string()
    .max(WORD_MAX)
    .optional()
    .describe(`Names separated by commas: ${SEVERITY_NAMES.join(", ")}.`),
  search: word.describe("Text that lines contain, in letters of either case."),
  traceId: word,
  executionId: word,
  taskId: word,
  revision: word,
};

export const logQuery = defineOperation({
  id: "logQuery",
  method: "GET",
  path: "/observability/logs",
  summary: "List what workloads have written, newest first",
  tenancy: "workspace",
  scope: LOGS_SCOPE,
  role: "member",
  kind: "log",
  query: z.object({
    ...subject,
    start: time.describe("UTC, as 2026-01-31T12:00:00; an hour before the end when absent."),
    end: time.describe("UTC; now when absent. At most three days after the start."),
    after: time.describe("Only lines written after the line with this timestamp."),
    before: time.describe(
      "Only lines written before the line with this timestamp: for the next page, without an offset.",
    ),
    ...narrowing,
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .optional()
      .describe(`Lines of each workload; ${LIMIT_DEFAULT} when absent and at most.`),
    offset: z.coerce.number().int().min(0).max(OFFSET_MAX).optional().describe("Newest lines to leave out."),
    interval: z.coerce.number().int().optional().describe("Accepted and without effect."),
  }),
  response: z.record(
    z.string(),
    z.object({
      logs: z.array(line),
      totalCount: z.int().describe("All lines that match, also beyond this page."),
      server: z.string().describe("Names of the nodes that keep the lines, separated by commas."),
    }),
  ),
});

export const BUCKETS_DEFAULT = 60;
export const BUCKETS_MAX = 500;

const counts = z.array(z.int());

export const logHistogram = defineOperation({
  id: "logHistogram",
  method: "GET",
  path: "/observability/logs/histogram",
  summary: "Count what workloads have written over time, by severity",
  tenancy: "workspace",
  scope: LOGS_SCOPE,
  role: "member",
  kind: "log",
  query: z.object({
    ...subject,
    start: time.describe("As in the list of lines."),
    end: time.describe("As in the list of lines."),
    ...narrowing,
    buckets: z.coerce
      .number()
      .int()
      .min(1)
      .optional()
      .describe(`Parts of the time range; default ${BUCKETS_DEFAULT}, at most ${BUCKETS_MAX}.`),
  }),
  response: z.object({
    start: z.string().describe("Begin of the first part."),
    end: z.string().describe("End of the last part."),
    stepMs: z.number().describe("Length of each part, in milliseconds."),
    info: counts.describe("Lines below a warning in each part, and those of unknown severity."),
    warning: counts,
    error: counts.describe("Errors and fatal errors."),
    total: z.int(),
  }),
});

export const logFollow = defineOperation({
  id: "logFollow",
  method: "GET",
  path: "/observability/logs/follow",
  summary: "Hear what workloads write as it comes, as server-sent events",
  tenancy: "workspace",
  scope: LOGS_SCOPE,
  role: "member",
  kind: "log",
  query: z.object({
    ...subject,
    ...narrowing,
    after: time.describe("The timestamp of the last line that is known; now when absent. At most an hour ago."),
  }),
  events: true,
  response: z.union([
    z.object({ workload: z.string(), logs: z.array(line) }).describe("Event `lines`: new lines, oldest first."),
    z
      .object({ workload: z.string(), count: z.int() })
      .describe(
        "Event `gap`: so many lines came at once that these are left out; ask for them with the list of lines.",
      ),
    z.object({}).describe("Event `ready`."),
    z.object({ message: z.string() }).describe("Event `end`: why the server ends the stream."),
  ]),
});

export const logOperations = [logQuery, logHistogram, logFollow];
