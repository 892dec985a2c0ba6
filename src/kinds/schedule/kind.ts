import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import { sandbox } from "../sandbox/kind.ts";

export const SCHEDULES_MAX = 100;
export const EXECUTIONS_KEPT_DEFAULT = 100;
/** Longest timeout of a scheduled process in seconds; 0 means no timeout. */
const TIMEOUT_MAX_SECONDS = 7 * 24 * 3600;

export type Schedule = ResourceOf<typeof schedule>;

type ScheduleState = {
  /** The last slot that was fired or missed; it is not fired again. */
  lastSlot?: number;
  /** Records of past firings, oldest first. */
  executions?: string[];
};

export const schedule = defineKind({
  name: "schedule",
  plural: "schedules",
  placed: {},
  summary: "A process that a sandbox starts at a time or again and again",
  within: sandbox,
  param: "scheduleId",
  verbs: ["list", "get", "create", "update", "delete"],
  flat: { name: "id" },
  nameOptional: true,
  nameRule: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[A-Za-z0-9][A-Za-z0-9_-]*$/, "must be letters, digits, hyphens and underscores"),
  countMax: SCHEDULES_MAX,
  spec: z.object({
    type: z.enum(["cron", "at", "sleep"]).describe("sleep is kept as at."),
    value: z.string().min(1).max(256).describe("Five cron fields, a date and time, or a duration."),
    input: z.object({
      command: z
        .string()
        .min(1)
        .max(64 * 1024),
      name: z.string().max(128).optional(),
      env: z.record(z.string().min(1).max(256), z.string().max(128 * 1024)).optional(),
      workingDir: z.string().max(4096).optional(),
      keepAlive: z.boolean().optional().describe("Default true."),
      timeout: z.int().min(0).max(TIMEOUT_MAX_SECONDS).optional().describe("Seconds; default 600, 0 = none."),
    }),
    maxExecutions: z
      .int()
      .min(1)
      .max(EXECUTIONS_KEPT_DEFAULT)
      .optional()
      .describe("Records of past runs that are kept; default 100."),
  }),
  recorded: z.custom<ScheduleState>(),
  secrets: ["spec.input.env.*"],
  paged: true,
  limits: { limitDefault: 20, limitMax: 100 },
  scopeWord: "sandboxes",
  scopes: { list: "sandboxes:get" },
  query: { list: { type: z.enum(["cron", "at"]).optional() } },
});
