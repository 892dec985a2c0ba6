/** Members of a JSON value by dotted path: `spec.ports.0.target`. */
import { UsageError } from "../lib/usage-error.ts";

type Json = Record<string, unknown>;

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const memberAt = (value: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((at, key) => {
    if (Array.isArray(at)) return at[Number(key)];
    return isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }, value);

/** Sets a member in place and creates missing parents; a number after a dot is a list index. */
export function setMember(target: Json, path: string, value: unknown): void {
  const keys = path.split(".");
  if (keys.some((key) => key === "" || key === "__proto__")) throw new UsageError(`'${path}' is not a path.`);
  let at: Json = target;
  for (const [index, key] of keys.slice(0, -1).entries()) {
    if (typeof at[key] !== "object" || at[key] === null) at[key] = /^\d+$/.test(keys[index + 1] ?? "") ? [] : {};
    at = at[key] as Json;
  }
  at[keys.at(-1) ?? ""] = value;
}

/** Splits `spec.size=10` into path and value. A value that looks like JSON is parsed; quotes make a number a text. */
export function parseAssignment(text: string): [path: string, value: unknown] {
  const [, path, value = ""] = text.match(/^([^=]+)=([\s\S]*)$/) ?? [];
  if (!path)
    throw new UsageError(`'${text}' is not an assignment.`, "write it as path=value, for example spec.size=10");
  return [path, /^\s*[[{]/.test(value) ? jsonOf(value, path) : plainScalar(value)];
}

/** Parses a list or an object. */
function jsonOf(value: string, path: string): unknown {
  try {
    return JSON.parse(value) as unknown;
  } catch (error) {
    const { message } = error as Error;
    throw new UsageError(`${path}: this is not JSON: ${message}`, `for a text write it in quotes: '${path}="…"'`);
  }
}

/** `key=value` where the value is always text. */
export function parsePairs(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const [, key, value = ""] = text.match(/^([^=]+)=([\s\S]*)$/) ?? [];
      if (!key) throw new UsageError(`'${text}' is not a pair.`, "write it as key=value");
      return [key, value];
    }),
  );
}

export function plainScalar(text: string): unknown {
  if (/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return Number(text);
  if (text === "true" || text === "false") return text === "true";
  if (text === "null") return null;
  return quoted(text) ?? text;
}

/** The text between quotes, as in JSON; an invalid escape is kept as it is. */
function quoted(text: string): string | undefined {
  const inner = text.match(/^"([\s\S]*)"$/)?.[1];
  if (inner === undefined) return undefined;
  try {
    return JSON.parse(text) as string;
  } catch {
    return inner;
  }
}
