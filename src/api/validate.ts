/** Reads what a client sent. Whatever is wrong is told with the path of the field and the rule it breaks. */
import type { z } from "zod";
import { PlatformError } from "../contract/errors.ts";

/** Deeper JSON has no meaning in any schema and would only cost stack. */
const DEPTH_MAX = 40;
const ISSUES_SHOWN_MAX = 5;

export function parseBody<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  return parse(schema, withoutNulls(body, 0), "invalid_field", "The body");
}

export function parseQuery<T extends z.ZodType>(schema: T, query: Record<string, string>): z.output<T> {
  return parse(schema, query, "invalid_parameter", "The query");
}

/** Repeated parameters are refused: which of them counts would be a guess. Empty ones count as absent. */
export function singleValues(query: unknown): Record<string, string> {
  const single: Record<string, string> = {};
  const given = query as Record<string, string | string[]>;
  for (const key in given) {
    const value = given[key];
    if (typeof value !== "string") throw new PlatformError("invalid_parameter", `${key} is given more than once.`);
    refuseNul(value, "invalid_parameter", key);
    if (value !== "") single[key] = value;
  }
  return single;
}

/** A name in a path that cannot be one. */
export function checkParams(params: Record<string, string>): void {
  for (const key in params) refuseNul(params[key] as string, "invalid_parameter", key);
}

/** PostgreSQL cannot keep the character, and nothing that we run can use it. */
function refuseNul(text: string, code: "invalid_field" | "invalid_parameter", where: string): void {
  if (text.includes("\0")) throw new PlatformError(code, `${where}: must not contain the character U+0000.`);
}

function parse<T extends z.ZodType>(
  schema: T,
  value: unknown,
  code: "invalid_field" | "invalid_parameter",
  whole: string,
): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues
    .slice(0, ISSUES_SHOWN_MAX)
    .map((issue) => `${pathOf(issue.path) || whole}: ${ruleOf(issue.message)}`);
  throw new PlatformError(code, `${issues.join("; ")}.`);
}

const pathOf = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text ? `${text}.${String(key)}` : String(key)),
    "",
  );

const ruleOf = (message: string): string => message.replace(/\.$/, "");

/**
 * Clients write back the nulls they read; in a full replacement an absent member and a null one mean the same. Nearly
 * no body has one, so a copy is made only of those that do.
 */
function withoutNulls(value: unknown, depth: number): unknown {
  if (typeof value === "string") refuseNul(value, "invalid_field", "The body");
  if (value === null || typeof value !== "object") return value;
  if (depth > DEPTH_MAX)
    throw new PlatformError("invalid_field", `The body is nested deeper than ${DEPTH_MAX} levels.`);
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) value[at] = withoutNulls(value[at], depth + 1);
    return value;
  }
  const members = value as Record<string, unknown>;
  let hasNull = false;
  for (const key in members) {
    refuseNul(key, "invalid_field", "The body");
    if (members[key] === null) hasNull = true;
    else if (typeof members[key] !== "number") members[key] = withoutNulls(members[key], depth + 1);
  }
  return hasNull ? Object.fromEntries(Object.entries(members).filter(([, member]) => member !== null)) : members;
}
