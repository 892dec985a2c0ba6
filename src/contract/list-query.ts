/** The listing parameters of every kind, and the rules for reading them. */
import { z } from "zod";
import { PlatformError } from "./errors.ts";
import { STATUSES } from "./fields.ts";

export const LIMIT_DEFAULT = 50;
export const LIMIT_MAX = 200;
export const Q_MAX = 200;
/** Shortest search text; a shorter one would match nearly everything and is ignored. */
export const Q_MIN = 2;
/** Longest `from`: longer than any name. */
const FROM_MAX = 256;

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
  labels: readonly LabelFilter[];
  /** The list begins here: a time in milliseconds for an order by creation, a name for an order by name. */
  from: number | string | null;
  /** A kind's own parameters as one text: the cursor is bound to them too. */
  narrowedBy: string | null;
}

export const pageMeta = z.object({ hasMore: z.boolean(), nextCursor: z.string(), total: z.int() });

/** A label that a resource must have, with this value or with any (null). */
export interface LabelFilter {
  key: string;
  value: string | null;
}

/** Most labels in one filter. */
const LABELS_MAX = 8;

const STATUS_ABOUT = "Comma-separated statuses.";

/** Filters that every list of resources has. */
export const filterParameters = z.object({
  status: z.string().optional().describe(STATUS_ABOUT),
  state: z.string().optional().describe("The same as `status`."),
  label: z
    .string()
    .max(2048)
    .optional()
    .describe("Comma-separated labels that a resource must have: `key=value`, or `key` for any value."),
  fields: z.enum(["summary"]).optional().describe("`summary` leaves the spec out."),
});

/** Parameters that every paged operation accepts, whether or not it has a use for them. */
export const pageParameters = z.object({
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
  status: z.string().optional().describe(STATUS_ABOUT),
  showTerminated: z.stringbool().optional(),
  externalId: z.string().optional(),
});

/** All values arrive as text; the declared types are for openapi.json and the client. */
export const listParameters = pageParameters.extend({
  ...filterParameters.shape,
  from: z
    .string()
    .max(FROM_MAX)
    .optional()
    .describe("Begin here: a time such as 2026-01-31T12:00:00Z when sorted by createdAt, a name when sorted by name."),
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
  if (given.anchor && given.from) throw bad("anchor", "cannot be used together with from");
  if (given.anchor && given.cursor) throw bad("anchor", "cannot be used together with cursor");
  return {
    limit: Math.min(given.limit ?? limitDefault, limitMax),
    sort,
    q: searchWord(given.q),
    anchorEnd: given.anchor === "end",
    cursor: given.cursor || null,
    statuses: parseStatuses(sameOf(given.status, given.state)),
    showTerminated: given.showTerminated ?? false,
    externalId: given.externalId || null,
    labels: parseLabels(given.label),
    from: given.from ? parseFrom(given.from, sort) : null,
    narrowedBy: null,
  };
}

function sameOf(status: string | undefined, state: string | undefined): string | undefined {
  if (status && state && status !== state) throw bad("state", "is the same as status; send one of them");
  return status || state;
}

function parseLabels(text: string | undefined): LabelFilter[] {
  if (!text) return [];
  const labels = text.split(",").map((part): LabelFilter => {
    const equals = part.indexOf("=");
    const key = (equals < 0 ? part : part.slice(0, equals)).trim();
    if (key === "") throw bad("label", "must be key=value or key, separated by commas");
    if (key.length < Q_MIN && part.length - equals - 1 < Q_MIN)
      throw bad("label", `needs a key or a value of at least ${Q_MIN} characters`);
    return { key, value: equals < 0 ? null : part.slice(equals + 1).trim() };
  });
  if (labels.length > LABELS_MAX) throw bad("label", `must not have more than ${LABELS_MAX} parts`);
  return labels;
}

function parseFrom(text: string, sort: Sort): number | string {
  if (sort.startsWith("name")) return text;
  const time = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time) || time < 0) throw bad("from", "must be a time such as 2026-01-31T12:00:00Z with this sort");
  return time;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

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
