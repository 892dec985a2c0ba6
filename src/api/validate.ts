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

/** Repeated parameters are refused: which of them counts would be a guess. */
export function singleValues(query: unknown): Record<string, string> {
  const single: Record<string, string> = {};
  for (const [key, value] of Object.entries(query as Record<string, string | string[]>)) {
    if (typeof value !== "string") throw new PlatformError("invalid_parameter", `${key} is given more than once.`);
    refuseNul(value, "invalid_parameter", key);
    single[key] = value;
  }
  return single;
}

/** A name in a path that cannot be one. */
export function checkParams(params: Record<string, string>): void {
  for (const [key, value] of Object.entries(params)) refuseNul(value, "invalid_parameter", key);
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

const ruleOf = (message: string): string => message.replace(/^Invalid input: /, "").replace(/\.$/, "");

/** Clients write back the nulls they read; in a full replacement an absent member and a null one mean the same. */
function withoutNulls(value: unknown, depth: number): unknown {
  if (typeof value === "string") refuseNul(value, "invalid_field", "The body");
  if (value === null || typeof value !== "object") return value;
  if (depth > DEPTH_MAX)
    throw new PlatformError("invalid_field", `The body is nested deeper than ${DEPTH_MAX} levels.`);
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([key, member]) => {
        refuseNul(key, "invalid_field", "The body");
        return [key, withoutNulls(member, depth + 1)];
      }),
  );
}
