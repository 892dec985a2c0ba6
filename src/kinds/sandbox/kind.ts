import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import { CPUS_MAX, CPUS_MIN } from "../workload/limits.ts";
import * as workload from "../workload/spec.ts";
import type { SandboxState } from "./state.ts";

/** Longest termination grace period in seconds. */
const GRACE_MAX_SECONDS = 3600;

/** Kernel options that clients may set; other names are refused. */
const KERNEL_OPTIONS = ["iptables", "nfs", "tun"] as const;
const extraArgs = z.record(z.string().max(64), z.enum(["enabled", "disabled"])).superRefine((map, context) => {
  for (const name of Object.keys(map))
    if (!KERNEL_OPTIONS.includes(name as (typeof KERNEL_OPTIONS)[number]))
      context.addIssue({
        code: "custom",
        path: [name],
        message: `is not an option; there are ${KERNEL_OPTIONS.join(", ")}`,
      });
});

export const cpus = z.number().min(CPUS_MIN).max(CPUS_MAX);

const network = workload.network.extend({
  subnet: z.string().max(128).optional(),
});

const upload = {
  upload: z
    .stringbool()
    .optional()
    .describe(
      "Build its image from an archive with a Dockerfile; the answer names the address in X-Service-Upload-Url.",
    ),
};

const lifecycle = z.looseObject({
  expirationPolicies: z
    .array(
      z.looseObject({
        type: z.enum(["ttl-max-age", "ttl-idle", "date"]),
        value: z.string().max(64),
        action: z.enum(["delete"]).optional(),
      }),
    )
    .max(fields.LIST_MAX)
    .optional(),
  onNodeLoss: z
    .enum(["wait", "recreate"])
    .optional()
    .describe(
      "When its node is lost: wait for the node (default), or start anew on another node, with the files of the image.",
    ),
  hibernateAfter: z
    .string()
    .max(64)
    .optional()
    .describe("Time in standby after which its memory is written to disk, such as 1h; needs isolation vm-like."),
  terminatedRetention: z.string().max(64).optional().describe("How long a record stays after its end; default 5m."),
});

const access = z.looseObject({
  roles: z
    .array(z.enum(["member", "admin"]))
    .max(2)
    .optional()
    .describe("Who may enter; admins always may."),
  since: z.string().max(64).optional().describe("Set by the platform: previews and tokens from before open nothing."),
});

export type Sandbox = ResourceOf<typeof sandbox>;

export const sandbox = defineKind({
  name: "sandbox",
  plural: "sandboxes",
  placed: {},
  summary: "An isolated machine with files, processes and ports",
  param: "sandboxName",
  verbs: ["list", "get", "create", "update", "delete"],
  nameOptional: true,
  spec: z.looseObject({
    enabled: workload.common.enabled,
    region: workload.common.region,
    policies: workload.common.policies,
    vpc: workload.vpc.optional(),
    runtime: z
      .looseObject({
        ...workload.runtime,
        cpus: cpus.optional().describe("Processors. Default: one for every 2048 MB of memory, at least 0.25."),
        ports: fields.ports.optional(),
        ttl: z.string().max(64).optional().describe("Most age, such as 24h."),
        expires: z.string().max(64).optional().describe("Date and time of the end."),
        extraArgs: extraArgs.optional().describe(`Options of the kernel: ${KERNEL_OPTIONS.join(", ")}.`),
        snapshotEnabled: z.unknown().optional().describe("Kept without an effect: snapshots are always possible."),
        terminationGracePeriodSeconds: z.int().min(0).max(GRACE_MAX_SECONDS).optional(),
      })
      .optional(),
    volumes: fields.volumeAttachments.optional(),
    lifecycle: lifecycle.optional(),
    access: access.optional().describe("Set by admins. Absent: every member of the workspace may enter."),
    network: network.optional(),
  }),
  recorded: z.custom<SandboxState>(),
  specOptional: true,
  extra: {
    state: z.enum(["RUNNING", "STANDBY"]).optional(),
    isolation: z
      .string()
      .optional()
      .describe("How it is kept from the machine: vm-like, mapped, contained, user or none."),
    bandwidth: z
      .looseObject({ sendMbps: z.number().nullable(), receiveMbps: z.number().nullable() })
      .optional()
      .describe("The limits that hold, in megabits per second; null = none in this direction. Absent: no limit."),
    imageSource: z.string().optional().describe("What its files come from: the image with its digest."),
    forkedFrom: z
      .object({ sandbox: z.string(), snapshotId: z.string() })
      .optional()
      .describe("The sandbox and the snapshot of it that a fork got its files from."),
    expiresIn: z.int().optional().describe("Seconds to the earliest end."),
    lastUsedAt: z.string().optional(),
    errors: z
      .array(
        z.looseObject({
          code: z.string().optional(),
          message: z.string().optional(),
          fatal: z.boolean().optional().describe("Whether it cannot be used."),
          instance: z.string().optional(),
          time: z.string().optional(),
        }),
      )
      .optional(),
  },
  immutable: ["spec.region", "spec.volumes", "spec.vpc"],
  secrets: workload.secrets,
  secretsShown: "on_request",
  secretsWriteOnly: workload.secretsWriteOnly,
  references: [
    workload.policies,
    workload.volumes,
    { path: "state.driveMounts[phase!=failed].driveName", kind: "drive" },
  ],
  withoutEffect: [
    { path: "runtime.snapshotEnabled", why: "snapshots are always possible", unless: [true] },
    ...KERNEL_OPTIONS.map((name) => ({
      path: `runtime.extraArgs.${name}`,
      why: "the kernel is the machine's own, and a sandbox cannot change it",
      unless: ["disabled"],
    })),
  ],
  initialStatus: "DEPLOYING",
  paged: true,
  byExternalId: true,
  query: {
    create: {
      ...upload,
      createIfNotExist: z.stringbool().optional().describe("A sandbox of this name is answered instead of refused."),
    },
    update: upload,
  },
  meters: ["sandbox_compute_runtime_gbs", "sandbox_image_storage_gbs", "sandbox_snapshot_storage_gbs"],
});
