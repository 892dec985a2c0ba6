import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { volumeTemplate } from "./kind.ts";

export const volumeTemplateVersionDelete = defineOperation({
  id: "volumetemplateVersionDelete",
  method: "DELETE",
  path: `${volumeTemplate.itemPath}/versions/{versionName}`,
  summary: "Delete one version of a volumetemplate",
  tenancy: "workspace",
  scope: "volumeTemplates:delete",
  role: "member",
  response: z.object({ message: z.string(), template: volumeTemplate.resource }),
  kind: volumeTemplate.name,
});
