import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineKind } from "../../contract/kind.ts";
import { mountPath, refuseSamePath } from "../../contract/mount-path.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import type { DeployState } from "../workload/deploy-state.ts";
import * as workload from "../workload/spec.ts";

/** Retries of a failed task. */
const RETRIES_MAX = 100;
/** Longest timeout of a task: 30 days. */
const TIMEOUT_MAX_SECONDS = 30 * 24 * 3600;

const ARGUMENTS_MAX = 256;
const ARGUMENT_LENGTH_MAX = 16 * 1024;

const scratchDisk = z.looseObject({
  name: z.string().min(1).max(fields.NAME_MAX),
  mountPath,
  sizeMb: z.int().positive().max(16_777_216),
  type: z.literal("ephemeral"),
  readOnly: z.boolean().optional(),
});

export type Job = ResourceOf<typeof job>;

export const job = defineKind({
  name: "job",
  plural: "jobs",
  placed: {},
  summary: "A batch job: many tasks of one program",
  param: "jobId",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    ...workload.common,
    network: workload.network.optional(),
    vpc: workload.vpc.optional(),
    githubRunner: z
      .looseObject({ repositories: z.union([z.array(z.string().max(256)).max(100), z.string().max(4096)]).optional() })
      .optional()
      .describe("Refused when it names repositories: no runner is registered at GitHub."),
    runtime: z
      .looseObject({
        ...workload.runtime,
        command: z
          .array(z.string().max(ARGUMENT_LENGTH_MAX))
          .max(ARGUMENTS_MAX)
          .optional()
          .describe("Program and arguments of a task, in place of the image's own entry point."),
        diskPercent: z.int().min(0).max(100).optional().describe("Kept without an effect; see volumes."),
        maxRetries: z.int().min(0).max(RETRIES_MAX).optional().describe("Of each task; default 0."),
        maxConcurrentTasks: z.int().min(1).max(10_000).optional(),
        ports: fields.ports.optional().describe("Kept without an effect: nobody connects to a task."),
        timeout: z.int().min(0).max(TIMEOUT_MAX_SECONDS).optional().describe("Seconds of each task; 0 = no limit."),
      })
      .optional(),
    volumes: z.array(scratchDisk).max(fields.LIST_MAX).superRefine(refuseSamePath).optional(),
  }),
  secrets: workload.secrets,
  secretsShown: "on_request",
  secretsWriteOnly: workload.secretsWriteOnly,
  references: [workload.policies],
  recorded: z.custom<DeployState>(),
  revisions: true,
  query: workload.upload,
  withoutEffect: [
    { path: "runtime.storageMb", why: "the root of a task is not limited in size; a volume is" },
    {
      path: "revision.stickySessionTtl",
      why: "an execution has no session; each one is drawn for itself",
      unless: [0],
    },
    { path: "runtime.diskPercent", why: "the disk of a task is not divided; a volume has a size" },
    { path: "runtime.ports", why: "nobody connects to a task" },
  ],
  initialStatus: "DEPLOYING",
  paged: true,
  meters: ["job_compute_runtime_gbs", "job_image_storage_gbs"],
});
