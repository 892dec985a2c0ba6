import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineKind } from "../../contract/kind.ts";
import { upload } from "../workload/spec.ts";

const revision = z.looseObject({
  id: z.string().optional(),
  image: z.string().max(1024).optional(),
  memory: fields.memoryMb.optional(),
  port: z.int().min(1).max(65535).optional(),
  envs: fields.envs.optional(),
  snapshot: z.string().max(256).optional(),
  createdAt: z.string().optional(),
  createdBy: z.string().optional(),
});

export const application = defineKind({
  name: "application",
  plural: "applications",
  summary: "A web application that everybody may reach",
  param: "applicationName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    enabled: z.boolean().optional().describe("Default true; false takes it out of service."),
    image: z.string().max(1024).optional(),
    memory: fields.memoryMb.optional().describe("MB, default 2048."),
    port: z.int().min(1).max(65535).optional().describe("Default 8080."),
    envs: fields.envs.optional(),
    region: fields.region.optional(),
    revision: fields.revisionConfiguration.optional(),
    revisions: z
      .array(revision)
      .max(fields.LIST_MAX)
      .optional()
      .describe("The first stands for image, memory, port and envs where those are absent; the rest is read-only."),
    urls: z
      .array(z.looseObject({ domain: z.string().max(253), subdomain: z.string().max(63).optional() }))
      .max(fields.LIST_MAX)
      .optional(),
    proxy: z.boolean().optional(),
    extensions: z.record(z.string(), z.looseObject({ sandbox: z.string().optional() })).optional(),
  }),
  secrets: ["spec.envs[name?secret].value", "spec.dockerConfig"],
  revisions: true,
  query: upload,
  revision,
  initialStatus: "DEPLOYING",
  paged: true,
});
