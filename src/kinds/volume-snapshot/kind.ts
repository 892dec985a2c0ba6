import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import { volume } from "../volume/kind.ts";

/** Snapshots of one volume; each may take as much space as the volume. */
const SNAPSHOTS_MAX = 50;

export const volumeSnapshot = defineKind({
  name: "volumesnapshot",
  plural: "volumesnapshots",
  placed: {},
  summary: "The files of a volume at one moment",
  within: volume,
  path: "/snapshots",
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
    volumeName: z.string().optional(),
    size: z.int().optional().describe("MB of the volume, and of every volume that is restored from it."),
    storedMb: z.int().optional().describe("MB that the copy takes."),
    workspace: z.string().optional(),
    createdBy: z.string().optional(),
  }),
  readOnlySpec: ["status", "error", "volumeName", "size", "storedMb", "workspace", "createdBy"],
  scopeWord: "volumes",
  scopes: { create: "volumes:update" },
  meters: ["volume_snapshot_storage_gbs"],
});
