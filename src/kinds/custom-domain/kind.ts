import { z } from "zod";
import { event } from "../../contract/fields.ts";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";

const DOMAIN_MAX = 253;
const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";

export const domainName = z
  .string()
  .max(DOMAIN_MAX)
  .regex(
    new RegExp(`^(?:${LABEL}\\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$`),
    "must be a domain name in lower case, such as apps.example.com, without a wildcard",
  );

export type CustomDomain = ResourceOf<typeof customDomain>;

export const customDomain = defineKind({
  name: "customdomain",
  plural: "customdomains",
  summary: "A domain of your own, for previews or an application",
  param: "domainName",
  verbs: ["list", "get", "create", "update", "delete"],
  nameRule: domainName,
  readOnlyMetadata: { sharedFromWorkspace: z.string().optional() },
  spec: z.looseObject({
    domainType: z.enum(["previews", "applications"]).optional().describe("`previews` when left out."),
    region: z.string().min(1).max(64).optional(),
    fallbackPreviewId: z.string().max(256).optional().describe("The preview that serves names nobody has."),
    subjectAlternativeNames: z.array(z.record(z.string(), z.unknown())).max(100).optional(),
    application: z.string().optional().describe("The application that the domain leads to."),
    txtRecords: z
      .record(z.string(), z.string())
      .optional()
      .describe("TXT records to publish: they prove that the domain is yours."),
    cnameRecords: z
      .string()
      .optional()
      .describe("Where the domain (previews: every name below it) must point with a CNAME record."),
    status: z.enum(["pending", "verified", "failed"]).optional(),
    lastVerifiedAt: z.string().optional(),
    verificationError: z.string().optional(),
  }),
  specOptional: true,
  extra: { events: z.array(event).optional().describe("Checks of the domain and its certificates, the newest last.") },
  readOnlySpec: ["application", "txtRecords", "cnameRecords", "status", "lastVerifiedAt", "verificationError"],
  immutable: ["spec.domainType", "spec.region"],
  meters: ["custom_domain_active_time_hours"],
});
