/** The listing parameters of every kind, and the rules for reading them. */
import { z } from "zod";
import { PlatformError } from "./errors.ts";
import { STATUSES } from "./fields.ts";

export const LIMIT_DEFAULT = 50;
export const LIMIT_MAX = 200;
export const Q_MAX = 200;
/** Shortest search text; a shorter one would match nearly everything and is ignored. */
export const Q_MIN = 2;

export const SORTS = ["createdAt:desc", "createdAt:asc", "name:asc", "name:desc"] as const;
export type Sort = (typeof SORTS)[number];

export interface ListQuery {
  limit: number;
  sort: Sort;
  /** Lower-cased, at least two characters, or null. */
  q: string | null;
  anchorEnd: boolean;
  cursor: string | null;
  statuses: readonly string[] | null;
  showTerminated: boolean;
  externalId: string | null;
  /** A kind's own parameters as one text: the cursor is bound to them too. */
  narrowedBy: string | null;
}

export const pageMeta = z.object({ hasMore: z.boolean(), nextCursor: z.string(), total: z.int() });

/** All values arrive as text; the declared types are for openapi.json and the client. */
export const listParameters = z.object({
  cursor: z.string().optional().describe("From `meta.nextCursor` of the page before; only with the same parameters."),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .optional()
    .describe(`1 to ${LIMIT_MAX}, default ${LIMIT_DEFAULT}; more is clamped.`),
  sort: z.enum(SORTS).optional(),
  q: z.string().optional().describe("Substring of name, display name, label keys and values; at least 2 characters."),
  anchor: z.enum(["end"]).optional().describe("`end` gives the oldest page; only with `createdAt:desc`."),
  status: z.string().optional().describe("Comma-separated statuses."),
  showTerminated: z.stringbool().optional(),
  externalId: z.string().optional(),
});

export interface ListLimits {
  limitDefault: number;
  limitMax: number;
}

export function parseListQuery(
  given: z.output<typeof listParameters>,
  { limitDefault, limitMax }: ListLimits = { limitDefault: LIMIT_DEFAULT, limitMax: LIMIT_MAX },
): ListQuery {
  const sort = given.sort ?? "createdAt:desc";
  if (given.anchor && sort !== "createdAt:desc") throw bad("anchor", "works only with sort=createdAt:desc");
  if (given.anchor && given.cursor) throw bad("anchor", "cannot be used together with cursor");
  return {
    limit: Math.min(given.limit ?? limitDefault, limitMax),
    sort,
    q: searchWord(given.q),
    anchorEnd: given.anchor === "end",
    cursor: given.cursor || null,
    statuses: parseStatuses(given.status),
    showTerminated: given.showTerminated ?? false,
    externalId: given.externalId || null,
    narrowedBy: null,
  };
}

/** The search text in lower case; null when it is absent or too short. */
export function searchWord(q = ""): string | null {
  if (q.length > 2 * Q_MAX || [...q].length > Q_MAX) throw bad("q", `must not be longer than ${Q_MAX} characters`);
  const word = q.trim().toLowerCase();
  return word.length < Q_MIN ? null : word;
}

function parseStatuses(text: string | undefined): string[] | null {
  if (!text) return null;
  const statuses = text.split(",").map((word) => word.trim().toUpperCase());
  const unknown = statuses.find((word) => !(STATUSES as readonly string[]).includes(word));
  if (unknown !== undefined)
    throw bad("status", `has the unknown value '${unknown}'; known are ${STATUSES.join(", ")}`);
  return statuses;
}

const bad = (parameter: string, rule: string): PlatformError =>
  new PlatformError("invalid_parameter", `${parameter} ${rule}.`);
