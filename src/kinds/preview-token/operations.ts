import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { previewToken } from "./kind.ts";

export const previewTokenDelete = defineOperation({
  id: "previewtokenDelete",
  method: "DELETE",
  path: previewToken.itemPath,
  summary: "Revoke a token by its name or its value",
  tenancy: "workspace",
  scope: "sandboxes:delete",
  role: "member",
  response: z.object({ message: z.string() }),
  kind: previewToken.name,
});
