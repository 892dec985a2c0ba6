/** Parts of a specification that several workload kinds share. */
import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import type { Reference } from "../../contract/references.ts";
import { isolation } from "./isolation-spec.ts";
import { network, networkSecrets, vpc } from "./network-spec.ts";

export { network, vpc };

/** Memory of a workload that does not set it. */
export const MEMORY_DEFAULT_MB = 2048;

/** Copies of one workload; a larger number is a typing error. */
const SCALE_MAX = 1000;

/** When the registry of an image is asked. */
export const imagePullPolicy = z
  .enum(["Always", "IfNotPresent", "Never"])
  .describe("When an image is pulled: at every start, when it is not on the machine (default), or never.");

/** Bounds of the size of a root: below ext4 has no room for its tables, and above lies a typing error. */
const STORAGE_MIN_MB = 64;
const STORAGE_MAX_MB = 16 * 1024 * 1024;

/** Clients send undeclared members too: they are stored, and the answer carries a warning. */
export const runtime = {
  image: z.string().max(1024).optional(),
  imagePullPolicy: imagePullPolicy.optional(),
  memory: fields.memoryMb.optional().describe("MB"),
  envs: fields.envs.optional(),
  generation: fields.generation,
  dockerConfig: z.unknown().optional().describe("Registry credentials; sealed, never shown."),
  storageMb: z
    .int()
    .min(STORAGE_MIN_MB)
    .max(STORAGE_MAX_MB)
    .optional()
    .describe("Size of its root in MB, where the machine can hold it. Default: twice the memory, at least 8192."),
  isolation: isolation
    .optional()
    .describe("Weakest isolation grade to run with, such as vm-like; refused where it is not offered."),
  skipBuild: z.unknown().optional().describe("Sent by clients that deploy an image; nothing is built from one."),
};

export const scale = {
  minScale: z.int().min(0).max(SCALE_MAX).optional(),
  maxScale: z.int().min(1).max(SCALE_MAX).optional(),
};

const url = z.looseObject({ domain: z.string().max(253), subdomain: z.string().max(63).optional() });
export type WorkloadUrl = z.output<typeof url>;

/** Applied by urls.ts. */
export const urls = z
  .array(url)
  .max(fields.LIST_MAX)
  .describe("Hosts at or below verified custom domains at which it answers too.");

export const common = {
  enabled: z.boolean().optional().describe("Default true; false takes it out of service."),
  region: fields.region.optional(),
  policies: fields.names.optional(),
  revision: fields.revisionConfiguration.optional(),
  triggers: fields.triggers.optional(),
};

const archiveComes = {
  upload: z
    .stringbool()
    .optional()
    .describe("Its code comes as an archive; the answer's upload-url header says where to PUT it."),
};
export const upload = { create: archiveComes, update: archiveComes };

const several = z.looseObject({
  ...common,
  network: network.optional(),
  vpc: vpc.optional(),
  urls: urls.optional(),
  runtime: z.looseObject({ ...runtime, ...scale }).optional(),
  volumes: fields.volumeAttachments.optional(),
  drives: fields.driveAttachments.optional(),
  integrationConnections: fields.names.optional(),
});

/** The members that several kinds of workloads have. */
export type WorkloadSpec = z.output<typeof several>;

/** The spec of a workload of any kind: each kind has some of these members, and no other meaning for their names. */
export const workloadSpec = (spec: Record<string, unknown>): WorkloadSpec => spec as WorkloadSpec;

export const secrets = [
  "spec.runtime.envs[name?secret].value",
  "spec.runtime.dockerConfig",
  "spec.triggers[id].configuration.callbackSecret",
  networkSecrets,
];
/** Never shown again, not even to who may see secrets. */
export const secretsWriteOnly = [networkSecrets];

export const policies: Reference = { path: "spec.policies[]", kind: "policy" };
export const connections: Reference = { path: "spec.integrationConnections[]", kind: "integrationconnection" };
export const drives: Reference = { path: "spec.drives[].name", kind: "drive" };
export const volumes: Reference = { path: "spec.volumes[type!=ephemeral].name", kind: "volume", exclusive: true };
