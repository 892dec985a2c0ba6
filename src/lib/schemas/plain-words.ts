/**
 * Messages for values that break a schema rule, in words for people: "must have at most 63 characters". Importing this
 * file sets the messages for every schema of the process; a message defined by a schema itself is kept.
 */
import { z } from "zod";

type Issue = z.core.$ZodRawIssue;

/** Type names as readers know them. */
const TYPES: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  tuple: "a list",
  set: "a list",
  object: "an object",
  record: "an object",
  map: "an object",
  null: "null",
  undefined: "absent",
  never: "absent",
  nan: "a number",
  date: "a date",
};

/** Names of text formats, with an example where the name alone does not show the form. */
const FORMATS: Readonly<Record<string, string>> = {
  email: "an email address",
  url: "an address such as https://example.com",
  uuid: "a UUID",
  guid: "a UUID",
  datetime: "a time such as 2026-03-01T00:00:00Z",
  date: "a date such as 2026-03-01",
  time: "a time of day such as 12:30:00",
  duration: "a duration such as PT5M",
  ipv4: "an IPv4 address",
  ipv6: "an IPv6 address",
  cidrv4: "an IPv4 range such as 10.0.0.0/8",
  cidrv6: "an IPv6 range such as fd00::/8",
  base64: "base64",
  base64url: "base64url",
  json_string: "JSON",
  hostname: "a host name",
  e164: "a telephone number such as +4912345",
};

/** The counted unit when a value is too large or too small; none for numbers. */
const COUNTED: Readonly<Record<string, string>> = {
  string: "character",
  array: "item",
  set: "item",
  map: "member",
  object: "member",
  record: "member",
  file: "byte",
};

const WORDS: { readonly [Code in Issue["code"] & string]?: (issue: Extract<Issue, { code: Code }>) => string } = {
  invalid_type: ({ expected, input }) => {
    if (input === undefined) return "is required";
    const [wanted, given] = [TYPES[expected] ?? expected, nameOf(input)];
    // A text that failed to convert to a number is reported by zod as a number.
    return wanted === given ? `must be ${wanted}` : `must be ${wanted}, not ${given}`;
  },
  too_small: ({ origin, minimum, inclusive }) => bound(origin, minimum, inclusive, ["at least", "more than"]),
  too_big: ({ origin, maximum, inclusive }) => bound(origin, maximum, inclusive, ["at most", "less than"]),
  invalid_format: ({ format, pattern, ...rest }) => {
    if (format === "starts_with") return `must start with "${(rest as { prefix?: string }).prefix}"`;
    if (format === "ends_with") return `must end with "${(rest as { suffix?: string }).suffix}"`;
    if (format === "includes") return `must contain "${(rest as { includes?: string }).includes}"`;
    const known = FORMATS[format];
    return known ? `must be ${known}` : `must match ${pattern ?? format}`;
  },
  invalid_value: ({ values }) =>
    values.length === 1 ? `must be ${String(values[0])}` : `must be one of ${values.map(String).join(", ")}`,
  unrecognized_keys: ({ keys }) => `has unknown members: ${keys.join(", ")}`,
  not_multiple_of: ({ divisor }) => `must be a multiple of ${divisor}`,
  invalid_key: () => "has a member with a name that is not allowed",
  invalid_element: () => "has an item that is not allowed",
  invalid_union: ({ errors }) => eitherOf(errors),
};

export function plainRule(issue: Issue): string {
  const words = WORDS[issue.code as keyof typeof WORDS] as ((issue: Issue) => string) | undefined;
  return words?.(issue) ?? "is not allowed";
}

function bound(
  origin: string,
  limit: number | bigint,
  inclusive: boolean | undefined,
  [within, beyond]: [string, string],
): string {
  const noun = COUNTED[origin];
  const word = inclusive === false ? beyond : within;
  if (!noun) return `must be ${word} ${limit}`;
  if (within === "at least" && Number(limit) === 1) return "must not be empty";
  return `must have ${word} ${limit} ${noun}${Number(limit) === 1 ? "" : "s"}`;
}

/**
 * Joins the rules of the alternatives themselves; issues deeper inside one alternative say nothing about the others.
 */
function eitherOf(alternatives: readonly (readonly z.core.$ZodIssue[])[]): string {
  const rules = alternatives.flatMap(([issue]) => (issue && issue.path.length === 0 ? [issue.message] : []));
  const forms = rules.map((rule) => rule.replace(/^must be /, "").replace(/, not .*$/, ""));
  const isPlain = forms.length > 0 && rules.every((rule) => rule.startsWith("must be "));
  return isPlain
    ? `must be ${[...new Set(forms)].join(" or ")}`
    : (rules[0] ?? "has none of the forms that are allowed");
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "number" && !Number.isNaN(value)) return Number.isInteger(value) ? "a number" : "a fraction";
  return typeof value === "boolean" ? String(value) : (TYPES[typeof value] ?? typeof value);
}

z.config({ localeError: plainRule });
