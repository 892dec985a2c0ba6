/** The part of a kind's definition that snapshots of sandboxes and of volumes share. */
import { z } from "zod";

/** Snapshots of one sandbox or volume; each may take as much space as its source. */
const SNAPSHOTS_MAX = 50;

export const copyRules = {
  placed: {},
  param: "snapshotId",
  verbs: ["list", "create"],
  flat: { name: "id" },
  nameOptional: true,
  nameRule: z
    .string()
    .max(64)
    .regex(/^snap_[A-Za-z0-9]+$/, "is given by the platform"),
  countMax: SNAPSHOTS_MAX,
} as const;

export const copyState = {
  name: z.string().max(128).optional(),
  status: z.enum(["pending", "ready", "failed"]).optional(),
  error: z.string().optional().describe("Why it failed."),
};

export const copyOrigin = { workspace: z.string().optional(), createdBy: z.string().optional() };
