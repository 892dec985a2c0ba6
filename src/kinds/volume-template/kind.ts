import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import type { UploadTicket } from "../upload-ticket.ts";

const version = z.looseObject({
  name: z.string(),
  status: z.enum(["CREATED", "READY", "FAILED"]),
  contentSize: z.int().optional(),
  templateName: z.string().optional(),
  workspace: z.string().optional(),
  region: z.string().optional(),
  versionId: z.string().optional().describe("Digest of what was sent."),
});

const VERSION_NAME = /^(?!latest$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const archiveComes = {
  upload: z
    .stringbool()
    .optional()
    .describe(
      "A version comes as an archive (tar, tar.gz or zip); the answer's upload-url header says where to PUT it.",
    ),
  version: z
    .string()
    .regex(VERSION_NAME, "must be letters, digits, dots, hyphens and underscores, and not latest")
    .optional()
    .describe("Name of the version that is sent; numbered when left out."),
};

export type VolumeTemplate = ResourceOf<typeof volumeTemplate>;

export interface TemplateVersion {
  name: string;
  status: "CREATED" | "READY" | "FAILED";
  contentSize?: number;
  uploadedAt?: string;
  /** Digest of the version's archive. */
  source?: string;
}

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
  recorded: z.custom<{ versions?: TemplateVersion[]; upload?: UploadTicket | undefined }>(),
  specOptional: true,
  query: { create: archiveComes, update: archiveComes },
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
