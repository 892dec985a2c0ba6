import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";

const permission = z.looseObject({
  labels: z.record(z.string(), z.string()).optional(),
  mode: z.enum(["read", "read-write"]).optional(),
  path: z.string().startsWith("/", "must start with /").max(512).optional(),
});

export type Drive = ResourceOf<typeof drive>;

/** What the files of a drive take, where drives have a quota. */
type DriveState = { usedBytes?: number; usedObjects?: number };

export const drive = defineKind({
  name: "drive",
  plural: "drives",
  placed: { shownAs: "infrastructureId" },
  summary: "Storage that many workloads share",
  param: "driveName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    region: z.string().max(64).optional(),
    size: z.int().positive().optional().describe("MB; kept as a note, a drive grows as needed."),
    permissions: z.array(permission).max(3).optional(),
    infrastructureId: z.string().optional(),
  }),
  recorded: z.custom<DriveState>(),
  state: z.object({
    s3Url: z.string().optional(),
    usedBytes: z.int().optional().describe("What its files hold, counted every few minutes where drives have a quota."),
    usedObjects: z.int().optional().describe("Its files, links and empty folders, counted like usedBytes."),
  }),
  readOnlySpec: ["infrastructureId"],
  immutable: ["spec.region", "spec.size"],
  withoutEffect: [
    {
      path: "size",
      why: "a drive grows as its files need it; the quota of the workspace limits all of its drives together",
    },
  ],
  initialStatus: "DEPLOYED",
  paged: true,
  byExternalId: true,
  scopes: { update: "drives:create" },
  deleteResponse: z.object({ message: z.string(), name: z.string() }),
  meters: ["drive_storage_gbs"],
});
