/** Parts of a specification that several workload kinds share. */
import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import type { WithoutEffect } from "../../contract/members/without-effect.ts";
import type { Reference } from "../../contract/references.ts";

/** What a workload gets that does not say. */
export const MEMORY_DEFAULT_MB = 2048;

/** More copies of one workload than one platform would run; a typing error is told early. */
const SCALE_MAX = 1000;

/** Clients send more than is declared: it is kept, and answered with a warning. */
export const runtime = {
  image: z.string().max(1024).optional(),
  memory: fields.memoryMb.optional().describe("MB"),
  envs: fields.envs.optional(),
  generation: fields.generation,
  dockerConfig: z.unknown().optional().describe("Registry credentials; sealed, never shown."),
  storageMb: z.unknown().optional().describe("Kept without an effect: a root is not limited in size."),
  skipBuild: z.unknown().optional().describe("Sent by clients that deploy an image; nothing is built from one."),
};

export const scale = {
  minScale: z.int().min(0).max(SCALE_MAX).optional(),
  maxScale: z.int().min(1).max(SCALE_MAX).optional(),
};

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

export const secrets = [
  "spec.runtime.envs[name?secret].value",
  "spec.runtime.dockerConfig",
  "spec.triggers[id].configuration.callbackSecret",
];

export const policies: Reference = { path: "spec.policies[]", kind: "policy" };
export const connections: Reference = { path: "spec.integrationConnections[]", kind: "integrationconnection" };
export const drives: Reference = { path: "spec.drives[].name", kind: "drive" };
export const volumes: Reference = { path: "spec.volumes[type!=ephemeral].name", kind: "volume", exclusive: true };

/** Clients of a hosted product set the size of a root disk; here a root takes what the machine has. */
export const rootStorage: readonly WithoutEffect[] = [
  { path: "runtime.storageMb", why: "the root of a workload is not limited in size; a volume is" },
];
