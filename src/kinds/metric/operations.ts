/** What a resource uses and is asked for, over time. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

const WORD_MAX = 256;
/** Length of the shortest step and of every stored minute, in seconds. */
export const STEP_MIN = 60;
export const STEP_MAX = 3600;
/** Points of an answer when no step is given. */
export const POINTS_DEFAULT = 120;

const time = z.string().max(40).optional();

export const metricQuery = defineOperation({
  id: "metricQuery",
  method: "GET",
  path: "/observability/metrics",
  summary: "Processor, memory, disk, requests, latency and cold starts of a resource over time",
  tenancy: "workspace",
  scope: "workspaces:get",
  role: "member",
  kind: "metric",
  query: z.object({
    kind: z
      .string()
      .min(1)
      .max(WORD_MAX)
      .describe("The kind of the resource, singular or plural: sandbox, agent, function, application or model."),
    name: z.string().min(1).max(WORD_MAX).describe("The name of the resource."),
    start: time.describe("UTC, as 2026-01-31T12:00:00. Default: an hour before the end. Minutes are kept for a day."),
    end: time.describe("UTC. Default: now."),
    step: z.coerce
      .number()
      .int()
      .min(STEP_MIN)
      .max(STEP_MAX)
      .multipleOf(STEP_MIN)
      .optional()
      .describe(
        `Seconds of a point, a multiple of ${STEP_MIN} up to ${STEP_MAX}. Default: the shortest with at most ${POINTS_DEFAULT} points.`,
      ),
  }),
  response: z.object({
    start: z.string().describe("Begin of the first point: the start, rounded down to a step."),
    end: z.string(),
    step: z.int().describe("Seconds of a point."),
    points: z.array(
      z.object({
        time: z.string().describe("Begin of the step."),
        cpus: z.number().nullable().describe("Processors in use on average; null where nothing ran."),
        memoryBytes: z.number().nullable().describe("The most memory in use; null where nothing ran."),
        diskBytes: z
          .number()
          .nullable()
          .describe("The most space that its own files took; null where nothing ran or the driver cannot tell."),
        requests: z.int(),
        errors: z.int().describe("Requests that ended with a status of 500 or above, or that the platform cut off."),
        p95Ms: z
          .number()
          .nullable()
          .describe("95 % of the requests took at most this long, to within 9 %; null without requests."),
        coldStarts: z.int().describe("Requests that waited for a start or a thaw."),
      }),
    ),
  }),
});

export const metricOperations = [metricQuery];
