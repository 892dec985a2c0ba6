import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineOperation } from "../../contract/operation.ts";
import { volume } from "./kind.ts";

const common = { kind: volume.name, tenancy: "workspace", role: "member" } as const;
const snapshotId = z.string().max(64);

export const volumeClone = defineOperation({
  ...common,
  id: "volumeClone",
  method: "POST",
  path: `${volume.itemPath}/clone`,
  summary: "Make a new volume with the files of this one, as they are now",
  scope: "volumes:create",
  body: z.looseObject({ targetName: fields.name.describe("Name of the new volume. Its size is that of this one.") }),
  response: volume.resource,
});

export const volumeRestore = defineOperation({
  ...common,
  id: "volumeRestore",
  method: "POST",
  path: `${volume.itemPath}/restore`,
  summary: "Make a new volume with the files of a snapshot of this one",
  scope: "volumes:create",
  body: z.looseObject({
    targetName: fields.name.describe("Name of the new volume. Its size is that of this one."),
    snapshotId,
  }),
  response: volume.resource,
});

export const volumeExport = defineOperation({
  ...common,
  id: "volumeExport",
  method: "POST",
  path: `${volume.itemPath}/export`,
  summary: "Read all files of a volume, as they are now or in a snapshot, as a tar",
  // Of its own: who may list volumes may not read their files.
  scope: "volumes:export",
  query: z.object({ snapshotId: snapshotId.optional() }),
  bytes: "application/x-tar",
  response: z.null(),
});

export const volumeImport = defineOperation({
  ...common,
  id: "volumeImport",
  method: "PUT",
  path: `${volume.itemPath}/import`,
  summary:
    "Give a volume that was never used its first files: a zip of files and folders, or a tar or tar.gz, also with links",
  scope: "volumes:update",
  stream: "application/x-tar",
  response: volume.resource,
});

export const volumeOperations = [volumeClone, volumeRestore, volumeExport, volumeImport];
