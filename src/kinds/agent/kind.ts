import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import type { DeployState } from "../workload/deploy-state.ts";
import * as workload from "../workload/spec.ts";

export type Agent = ResourceOf<typeof agent>;

export const agent = defineKind({
  name: "agent",
  plural: "agents",
  placed: {},
  summary: "An agent behind an address of its own",
  param: "agentName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    ...workload.common,
    network: workload.network.optional(),
    vpc: workload.vpc.optional(),
    public: z.boolean().optional().describe("Callable without credentials; default false."),
    urls: workload.urls.optional(),
    repository: z.looseObject({ type: z.string().optional(), url: z.string().max(2048).optional() }).optional(),
    runtime: z.looseObject({ ...workload.runtime, ...workload.scale }).optional(),
    volumes: fields.volumeAttachments.optional(),
    drives: fields.driveAttachments.optional(),
  }),
  secrets: workload.secrets,
  secretsShown: "on_request",
  secretsWriteOnly: workload.secretsWriteOnly,
  references: [workload.policies, workload.volumes, workload.drives],
  recorded: z.custom<DeployState>(),
  revisions: true,
  query: workload.upload,
  withoutEffect: [
    { path: "repository", why: "code is not fetched from a repository; send it as an archive or name an image" },
  ],
  initialStatus: "DEPLOYING",
  paged: true,
  meters: ["agent_compute_runtime_gbs", "agent_image_storage_gbs", "agent_async_requests_count"],
});
