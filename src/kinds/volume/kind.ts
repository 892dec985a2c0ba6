import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import type { CopySource } from "../../node/capabilities/volume-copies.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";

export const VOLUME_SIZE_DEFAULT_MB = 1024;

export const SCHEDULED_KEPT_DEFAULT = 7;
/** Fewer than a volume may have, so that there is room for the next one. */
const SCHEDULED_KEPT_MAX = 48;

export type Volume = ResourceOf<typeof volume>;

type VolumeState = {
  /** Digest of the archive with its first files. */
  content?: string | undefined;
  copyOf?: CopySource;
  /** Whether the machine enforces its size; absent while it has no storage. */
  sized?: boolean;
  usedBytes?: number | undefined;
  /** Since when times count: the last scheduled snapshot, or the moment in which this schedule was seen first. */
  snapshotsSince?: { schedule: string; atMs: number };
};

export const volume = defineKind({
  name: "volume",
  plural: "volumes",
  placed: { shownAs: "infrastructureId" },
  summary: "Storage that outlives the sandbox it is attached to",
  param: "volumeName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    region: z.string().max(64).optional(),
    size: z.int().positive().max(16_777_216).optional().describe(`MB, default ${VOLUME_SIZE_DEFAULT_MB}.`),
    template: z.string().max(128).optional(),
    infrastructureId: z.string().optional(),
    snapshots: z
      .looseObject({
        schedule: z.string().min(1).max(256).describe("Five cron fields, in UTC."),
        keep: z
          .int()
          .min(1)
          .max(SCHEDULED_KEPT_MAX)
          .optional()
          .describe(`Scheduled snapshots that are kept; default ${SCHEDULED_KEPT_DEFAULT}.`),
      })
      .optional()
      .describe("Snapshots that are taken by themselves."),
  }),
  recorded: z.custom<VolumeState>(),
  state: z.object({
    attachedTo: z.string().optional(),
    usedBytes: z.int().optional().describe("Space that its files take, measured every few minutes."),
  }),
  extra: {
    terminatedAt: z.string().optional(),
    sized: z.boolean().optional().describe("False: the machine cannot enforce spec.size."),
  },
  readOnlySpec: ["infrastructureId"],
  immutable: ["spec.region", "spec.size", "spec.template"],
  initialStatus: "DEPLOYED",
  paged: true,
  byExternalId: true,
  meters: ["volume_storage_gbs"],
});
