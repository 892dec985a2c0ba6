import { z } from "zod";
import { defineKind } from "../../contract/kind.ts";
import type { ResourceOf } from "../../store/resources/resource.ts";

/** Members of one connection. Providers need only a handful. */
const MEMBERS_MAX = 64;
const MEMBER_LENGTH_MAX = 64 * 1024;

const members = z
  .record(z.string().min(1).max(256), z.string().max(MEMBER_LENGTH_MAX))
  .refine((map) => Object.keys(map).length <= MEMBERS_MAX, `must not have more than ${MEMBERS_MAX} entries`);

/** Members that hold a URL which the platform calls. They are validated when the connection is written. */
const ADDRESSES = ["baseUrl", "tokenUrl"];

const config = members.superRefine((map, context) => {
  for (const name of ADDRESSES)
    if (map[name] && !isAddress(map[name]))
      context.addIssue({
        code: "custom",
        path: [name],
        message: "must be an http or https address without credentials, query or fragment",
      });
});

function isAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password && !/[?#]/.test(text);
}

export type IntegrationConnection = ResourceOf<typeof integrationConnection>;

export const integrationConnection = defineKind({
  name: "integrationconnection",
  plural: "integrationconnections",
  summary: "Credentials for a third-party service, kept by the platform and used on its side only",
  path: "/integrations/connections",
  param: "connectionName",
  verbs: ["list", "get", "create", "update", "delete"],
  spec: z.looseObject({
    integration: z.string().min(1).max(64).describe("Name of the integration."),
    config: config.optional(),
    secret: members.optional().describe("Masked in every answer."),
    sandbox: z.boolean().optional(),
  }),
  secrets: ["spec.secret.*"],
  initialStatus: "DEPLOYED",
  scopeWord: "integrations",
  roles: { create: "admin", update: "admin", delete: "admin" },
});
