/** Search over all kinds. */
import { z } from "zod";
import { Q_MAX, Q_MIN } from "../../contract/list-query.ts";
import { defineOperation } from "../../contract/operation.ts";

export const LIMIT_DEFAULT = 20;
export const LIMIT_MAX = 50;

export const searchFind = defineOperation({
  id: "searchFind",
  method: "GET",
  path: "/search",
  summary: "Find resources of all kinds by a part of their name, display name or labels",
  tenancy: "workspace",
  scope: "workspaces:get",
  role: "member",
  kind: "search",
  query: z.object({
    q: z
      .string()
      .describe(
        `Substring of name, display name, label keys and values; ${Q_MIN} to ${Q_MAX} characters, in any case.`,
      ),
    kinds: z
      .string()
      .max(1024)
      .optional()
      .describe(
        "Kinds, separated by commas, singular or plural; every kind that the credentials may list when absent.",
      ),
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .optional()
      .describe(`1 to ${LIMIT_MAX}, default ${LIMIT_DEFAULT}; more is clamped.`),
  }),
  response: z.object({
    data: z
      .array(
        z.object({
          kind: z.string(),
          plural: z.string(),
          name: z.string(),
          displayName: z.string().optional(),
          labels: z.record(z.string(), z.string()).optional(),
          uid: z.string(),
          status: z.string().optional(),
          createdAt: z.string(),
          updatedAt: z.string(),
        }),
      )
      .describe(
        "Names that equal the text first, then names that begin with it, contain it, and the rest; newest first.",
      ),
    meta: z.object({ hasMore: z.boolean() }),
  }),
});

export const searchOperations = [searchFind];
