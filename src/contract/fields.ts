/** Field rules that every kind shares. Messages name the rule; the validator adds the path. */
import { z } from "zod";
import "../lib/schemas/plain-words.ts";
import { mountPath, refuseSamePath } from "./mount-path.ts";

export const NAME_MAX = 49;
export const DISPLAY_NAME_MAX = 63;
export const EXTERNAL_ID_MAX = 64;
/** Labels are searched and indexed, so their number and length are limited. */
export const LABELS_MAX = 64;
export const LABEL_KEY_MAX = 128;
export const LABEL_VALUE_MAX = 256;

export const name = z
  .string()
  .min(1)
  .max(NAME_MAX)
  .regex(
    /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/,
    "must be lower-case letters, digits and hyphens, and start and end with a letter or digit",
  );

/** The length is counted in code points: a character beyond the basic plane counts once. */
export const displayName = z
  .string()
  .refine(
    (text) => text.length <= 2 * DISPLAY_NAME_MAX && [...text].length <= DISPLAY_NAME_MAX,
    `must not have more than ${DISPLAY_NAME_MAX} characters`,
  )
  .meta({ maxLength: DISPLAY_NAME_MAX });

export const externalId = z
  .string()
  .max(EXTERNAL_ID_MAX)
  .regex(/^[A-Za-z0-9-]*$/, "must be letters, digits and hyphens");

export const labels = z
  .record(z.string().min(1).max(LABEL_KEY_MAX), z.string().max(LABEL_VALUE_MAX))
  .refine((map) => Object.keys(map).length <= LABELS_MAX, `must not have more than ${LABELS_MAX} entries`);

export const STATUSES = [
  "DELETING",
  "TERMINATED",
  "FAILED",
  "DEACTIVATED",
  "DEACTIVATING",
  "UPLOADING",
  "BUILDING",
  "DEPLOYING",
  "DEPLOYED",
  "BUILT",
] as const;
export const status = z.enum(STATUSES);
export type Status = z.infer<typeof status>;

export const event = z.object({
  type: z.string(),
  status: z.string().optional(),
  message: z.string().optional(),
  time: z.string(),
  revision: z.string().optional(),
  canaryRevision: z.string().optional(),
});
export type Event = z.infer<typeof event>;

/** Most items of one list in a spec: more is a mistake, and every answer carries all of them. */
export const LIST_MAX = 64;
/** Most drives per workload: each costs a mount in its namespace. */
const DRIVES_MAX = 16;
export const ENVS_MAX = 1024;

export const env = z.looseObject({
  name: z
    .string()
    .min(1)
    .max(256)
    .regex(/^[^=]*$/, "must not contain ="),
  value: z
    .string()
    .max(128 * 1024)
    .optional(),
  secret: z.boolean().optional(),
});
export const envs = z.array(env).max(ENVS_MAX);

export const port = z.looseObject({
  name: z.string().optional(),
  target: z.int().min(1).max(65535),
  protocol: z.enum(["HTTP", "TCP", "UDP", "TLS"]).optional(),
});

/** Revision names are numbers, and clients may send them as JSON numbers. */
const revisionName = z.preprocess((given) => (Number.isSafeInteger(given) ? String(given) : given), z.string());

export const revisionConfiguration = z.looseObject({
  active: revisionName.optional().describe("The revision that takes what no canary takes; default the latest."),
  canary: revisionName.optional().describe("Another revision that takes a share."),
  canaryPercent: z.int().min(0).max(100).optional().describe("Share of the canary; default 0."),
  stickySessionTtl: z.int().min(0).optional().describe("Seconds for which a cookie keeps a client at its revision."),
  traffic: z
    .int()
    .min(0)
    .max(100)
    .optional()
    .describe("Share of each new revision: below 100 the new one becomes the canary and the one before stays active."),
});

export const ports = z.array(port).max(LIST_MAX);

export const trigger = z.looseObject({
  id: z.string().min(1).max(128).optional(),
  type: z.enum(["http", "http-async", "cron"]).optional(),
  enabled: z.boolean().optional(),
  configuration: z
    .looseObject({
      authenticationType: z.enum(["public", "private"]).optional(),
      callbackSecret: z.string().optional(),
      callbackUrl: z.string().max(2048).optional(),
      path: z.string().max(2048).optional(),
      retry: z.int().min(0).max(100).optional(),
      schedule: z.string().max(256).optional().describe("Of a cron trigger: five fields."),
      timezone: z.string().max(64).optional().describe("That the schedule is read in; default UTC."),
      tasks: z.array(z.record(z.string(), z.unknown())).optional(),
      timeout: z.int().min(0).optional(),
    })
    .optional(),
});

export const volumeAttachment = z.looseObject({
  name: z.string().min(1).max(NAME_MAX),
  mountPath,
  readOnly: z.boolean().optional(),
  sizeMb: z.int().positive().optional(),
  type: z.enum(["persistent", "ephemeral"]).optional(),
});

/** A path below the root of a drive, or the root itself. */
const drivePath = z
  .string()
  .max(512)
  .regex(/^\/[^\0]*$/, "must start with /")
  .refine((path) => !/(^|\/)\.{1,2}(\/|$)/.test(path), "must have no . or .. in it");

export const driveAttachment = z.looseObject({
  name: z.string().min(1).max(NAME_MAX),
  mountPath,
  drivePath: drivePath.optional().describe("The part of the drive to mount; default all of it."),
  readOnly: z.boolean().optional(),
});

export const triggers = z.array(trigger).max(LIST_MAX);
export const driveAttachments = z.array(driveAttachment).max(DRIVES_MAX).superRefine(refuseSamePath);
export const volumeAttachments = z.array(volumeAttachment).max(LIST_MAX).superRefine(refuseSamePath);
/** Names of other resources; writing the resource checks that they exist. */
export const names = z.array(z.string().min(1).max(NAME_MAX)).max(LIST_MAX);
export const region = z.string().max(64);

export const generation = z.enum(["mk2", "mk3"]).optional();
export const memoryMb = z.int().positive().max(1_048_576);
