import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import { copyOrigin, copyRules, copyState } from "../snapshot/copy-rules.ts";
import { volume } from "../volume/kind.ts";

export type VolumeSnapshot = ResourceOf<typeof volumeSnapshot>;

export const volumeSnapshot = defineKind({
  ...copyRules,
  name: "volumesnapshot",
  plural: "volumesnapshots",
  summary: "The files of a volume at one moment",
  within: volume,
  path: "/snapshots",
  spec: z.object({
    ...copyState,
    volumeName: z.string().optional(),
    size: z.int().optional().describe("MB of the volume, and of every volume that is restored from it."),
    storedMb: z.int().optional().describe("MB that the copy takes."),
    ...copyOrigin,
  }),
  readOnlySpec: ["status", "error", "volumeName", "size", "storedMb", "workspace", "createdBy"],
  scopeWord: "volumes",
  scopes: { create: "volumes:update" },
  meters: ["volume_snapshot_storage_gbs"],
});
