/** The part of a kind's definition that snapshots of sandboxes and of volumes share. */
import { z } from "zod";

/** Snapshots of one sandbox or volume; each may take as much space as its source. */
const SNAPSHOTS_MAX = 50;

export type SnapshotState = {
  phase?: "ready" | "failed";
  error?: string;
  /** For the server that meters storage, which may be another one. */
  storedMb?: number;
  /** Taken by the schedule of a volume. */
  scheduled?: boolean;
};

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
  recorded: z.custom<SnapshotState>(),
} as const;

export const copyState = {
  name: z.string().max(128).optional(),
  status: z.enum(["pending", "ready", "failed"]).optional(),
  error: z.string().optional().describe("Why it failed."),
};

export const copyOrigin = { workspace: z.string().optional(), createdBy: z.string().optional() };
