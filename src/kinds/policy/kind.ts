import { z } from "zod";
import * as fields from "../../contract/fields.ts";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";
import { isolation } from "../workload/isolation-spec.ts";
import { domainLists, networkRules } from "../workload/network-spec.ts";

export const POLICY_TYPES = ["location", "flavor", "maxToken", "network", "isolation"] as const;

const cap = z.int().min(0).max(Number.MAX_SAFE_INTEGER).optional();

const usage = z.looseObject({
  agents: z.int(),
  applications: z.int(),
  functions: z.int(),
  jobs: z.int(),
  models: z.int(),
  sandboxes: z.int(),
});

export type Policy = ResourceOf<typeof policy>;

export const policy = defineKind({
  name: "policy",
  plural: "policies",
  summary:
    "A rule for the resources that name it: where they run, on what, how many tokens they may use; or, of type network or isolation, for every workload of the workspace",
  param: "policyName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    type: z.enum(POLICY_TYPES),
    resourceTypes: z
      .array(z.enum(["model", "function", "agent", "sandbox", "application", "job"]))
      .max(fields.LIST_MAX)
      .optional(),
    locations: z
      .array(z.looseObject({ type: z.enum(["location", "country", "continent"]), name: z.string().min(1).max(64) }))
      .max(fields.LIST_MAX)
      .optional(),
    flavors: z
      .array(z.looseObject({ type: z.enum(["cpu", "gpu"]).optional(), name: z.string().max(64).optional() }))
      .max(fields.LIST_MAX)
      .optional(),
    maxTokens: z
      .looseObject({
        granularity: z.enum(["minute", "hour", "day", "month"]).optional().describe("Default day."),
        step: z.int().min(1).max(1000).optional().describe("Length of the window in units of granularity; default 1."),
        input: cap.describe("0 = no limit."),
        output: cap.describe("0 = no limit."),
        total: cap.describe("0 = no limit."),
        ratioInputOverOutput: cap,
        requests: cap.describe("Requests in a window; 0 = no limit."),
        repeats: cap.describe("Requests in a window that are byte for byte the same: a loop; 0 = no limit."),
        per: z
          .enum(["policy", "key", "session"])
          .optional()
          .describe(
            "Whose requests are counted together: all (the default), one caller's, or one session's (header X-Service-Session-Id or X-Service-Thread-Id).",
          ),
      })
      .optional(),
    network: z
      .looseObject({ ...networkRules, proxy: z.looseObject(domainLists).optional() })
      .optional()
      .describe("Outbound rules of every workload of the workspace, besides its own; see docs/network.md."),
    isolation: isolation
      .optional()
      .describe("Weakest isolation grade of every workload of the workspace; see docs/isolation.md."),
    sandbox: z.boolean().optional(),
  }),
  extra: { usage: usage.optional() },
  roles: { create: "admin", update: "admin", delete: "admin" },
  paged: true,
});

/** Whether a policy for every workload of its workspace applies to those of this kind. */
export function appliesTo({ resourceTypes = [] }: Policy["spec"], kind: string): boolean {
  return resourceTypes.length === 0 || resourceTypes.some((each) => each === kind);
}
