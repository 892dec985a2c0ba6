import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import { sandbox } from "../sandbox/kind.ts";

/** Snapshots of one sandbox; each holds a copy of its files. */
const SNAPSHOTS_MAX = 50;

export const snapshot = defineKind({
  name: "snapshot",
  plural: "snapshots",
  placed: {},
  summary: "The files of a sandbox at one moment",
  within: sandbox,
  param: "snapshotId",
  verbs: ["list", "create"],
  flat: { name: "id" },
  nameOptional: true,
  nameRule: z
    .string()
    .max(64)
    .regex(/^snap_[A-Za-z0-9]+$/, "is given by the platform"),
  countMax: SNAPSHOTS_MAX,
  spec: z.object({
    name: z.string().max(128).optional(),
    status: z.enum(["pending", "ready", "failed"]).optional(),
    error: z.string().optional().describe("Why it failed."),
    sandboxName: z.string().optional(),
    workspace: z.string().optional(),
    createdBy: z.string().optional(),
  }),
  readOnlySpec: ["status", "error", "sandboxName", "workspace", "createdBy"],
  scopeWord: "sandboxes",
  scopes: { create: "sandboxes:update" },
  meters: ["sandbox_snapshot_storage_gbs"],
});
