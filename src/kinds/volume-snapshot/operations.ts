import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { volumeSnapshot } from "./kind.ts";

export const volumeSnapshotDelete = defineOperation({
  id: "volumesnapshotDelete",
  method: "DELETE",
  path: volumeSnapshot.itemPath,
  summary: "Delete a snapshot of a volume",
  tenancy: "workspace",
  scope: "volumes:delete",
  role: "member",
  response: z.null(),
  status: 204,
  kind: volumeSnapshot.name,
});
