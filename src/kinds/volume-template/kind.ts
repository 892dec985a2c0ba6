import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";

const version = z.looseObject({
  name: z.string(),
  status: z.enum(["CREATED", "READY", "FAILED"]),
  contentSize: z.int().optional(),
  templateName: z.string().optional(),
  workspace: z.string().optional(),
});

export const volumeTemplate = defineKind({
  name: "volumetemplate",
  plural: "volumetemplates",
  summary: "Files that new volumes start with, in versions",
  path: "/volume_templates",
  param: "volumeTemplateName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    defaultSize: z.int().positive().max(16_777_216).optional().describe("MB of a volume that does not say."),
    description: z.string().max(4096).optional(),
  }),
  specOptional: true,
  extra: {
    state: z.looseObject({
      status: z.enum(["created", "ready", "error"]),
      latestVersion: z.string().optional(),
      versionCount: z.int(),
      lastVersionUploadedAt: z.string().optional(),
    }),
    versions: z.array(version),
  },
  scopeWord: "volumeTemplates",
  scopes: { update: "volumeTemplates:upsert" },
});
