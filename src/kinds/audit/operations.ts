/** The audit log: every change and every sign-in, readable by admins of the workspace or the account. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";

export const LIMIT_DEFAULT = 50;
export const LIMIT_MAX = 200;
const WORD_MAX = 254;

const line = z.object({
  id: z.int().describe("Counts up by one with every line of the platform."),
  time: z.string(),
  actor: z.object({
    id: z.string(),
    type: z.string(),
    name: z.string(),
    authMethod: z.string(),
    keyId: z.string().optional(),
  }),
  action: z.string(),
  target: z.string(),
  workspace: z.string().optional(),
  accountId: z.string().optional(),
  outcome: z.enum(["ok", "denied", "failed"]),
  status: z.int(),
  sourceAddress: z.string(),
  requestId: z.string(),
  hash: z.string().describe("Covers this line and the hash of the one before."),
});

const word = z.string().min(1).max(WORD_MAX).optional();
const query = z.object({
  actor: word.describe("Id of a person or service account."),
  action: word.describe("Id of an operation (with `Secrets` behind it where they were shown), `signIn` or `consent`."),
  outcome: z.enum(["ok", "denied", "failed"]).optional(),
  startTime: z.iso.datetime({ offset: true }).optional(),
  endTime: z.iso.datetime({ offset: true }).optional(),
  limit: z.coerce.number().int().min(1).optional().describe(`At most ${LIMIT_MAX}, default ${LIMIT_DEFAULT}.`),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional()
    .describe("From `meta.nextCursor` of the page before."),
});

const page = z.object({ data: z.array(line), meta: z.object({ hasMore: z.boolean(), nextCursor: z.string() }) });

const common = { kind: "audit", method: "GET", scope: "audit:list", role: "admin" } as const;

export const auditList = defineOperation({
  ...common,
  id: "auditList",
  path: "/audit",
  summary: "List who changed what in the workspace, newest first",
  tenancy: "workspace",
  query,
  response: page,
  verb: "list",
});

export const accountAudit = defineOperation({
  ...common,
  kind: "account",
  id: "accountAudit",
  path: "/accounts/{accountId}/audit",
  summary: "List who changed what in the account's workspaces, and who signed in, newest first",
  tenancy: "account",
  query: query.extend({ workspace: word }),
  response: page,
});

export const auditVerify = defineOperation({
  ...common,
  id: "auditVerify",
  path: "/audit/verify",
  summary: "Check that no line of the audit log was changed, removed or added afterwards",
  tenancy: "workspace",
  response: z.object({
    intact: z.boolean(),
    firstId: z.int().describe("The first line that is kept."),
    lines: z.int().describe("Lines that were found right."),
    brokenAt: z.int().nullable().describe("The first line that is wrong."),
    lastId: z.int(),
    lastHash: z.string().describe("Kept elsewhere, it shows later that nothing up to here was cut off."),
  }),
});

export const auditOperations = [auditList, accountAudit, auditVerify];
