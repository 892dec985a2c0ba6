import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import type { DeployState } from "../workload/deploy-state.ts";
import { networkSecrets } from "../workload/network-spec.ts";
import { imagePullPolicy, network, upload, urls, vpc } from "../workload/spec.ts";

/** Bytes of one argument: the limit of the Linux kernel (MAX_ARG_STRLEN). */
const COMMAND_WORD_MAX = 128 * 1024;
const COMMAND_WORDS_MAX = 1024;

export const command = z.array(z.string().max(COMMAND_WORD_MAX)).max(COMMAND_WORDS_MAX);
export const workingDir = z.string().max(4096).startsWith("/");

/** The source of a revision's files, and the command that is started in them. */
const files = {
  snapshot: z.string().max(256).optional().describe("Files of a sandbox instead of the image's own."),
  command: command.optional().describe("Program and arguments; default: the image's entry point."),
  workingDir: workingDir.optional(),
};

const revision = z.looseObject({
  id: z.string().optional(),
  image: z.string().max(1024).optional(),
  memory: fields.memoryMb.optional(),
  port: z.int().min(1).max(65535).optional(),
  envs: fields.envs.optional(),
  ...files,
  createdAt: z.string().optional(),
  createdBy: z.string().optional(),
});

export type Application = ResourceOf<typeof application>;

export const application = defineKind({
  name: "application",
  plural: "applications",
  placed: {},
  summary: "A web application that everybody may reach",
  param: "applicationName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    enabled: z.boolean().optional().describe("Default true; false takes it out of service."),
    image: z.string().max(1024).optional(),
    imagePullPolicy: imagePullPolicy.optional(),
    memory: fields.memoryMb.optional().describe("MB, default 2048."),
    port: z.int().min(1).max(65535).optional().describe("Default 8080."),
    envs: fields.envs.optional(),
    ...files,
    region: fields.region.optional(),
    network: network.optional(),
    vpc: vpc.optional(),
    revision: fields.revisionConfiguration.optional(),
    revisions: z
      .array(revision)
      .max(fields.LIST_MAX)
      .optional()
      .describe("The first stands for image, memory, port and envs where those are absent; the rest is read-only."),
    urls: urls.optional(),
    proxy: z.boolean().optional(),
    dockerConfig: z.unknown().optional().describe("Registry credentials; sealed, never shown."),
    extensions: z.record(z.string(), z.looseObject({ sandbox: z.string().optional() })).optional(),
  }),
  secrets: ["spec.envs[name?secret].value", "spec.dockerConfig", networkSecrets],
  secretsWriteOnly: [networkSecrets],
  recorded: z.custom<DeployState>(),
  revisions: true,
  query: upload,
  revision,
  initialStatus: "DEPLOYING",
  paged: true,
});
