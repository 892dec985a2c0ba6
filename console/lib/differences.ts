/** Members in which two documents differ. */
import { isObject } from "./members.ts";

export interface Difference {
  path: string;
  /** Null where the member is absent. */
  before: string | null;
  after: string | null;
}

export function differencesOf(before: unknown, after: unknown): Difference[] {
  const [old, next] = [flat(before), flat(after)];
  return [...new Set([...old.keys(), ...next.keys()])]
    .filter((path) => old.get(path) !== next.get(path))
    .map((path) => ({ path, before: old.get(path) ?? null, after: next.get(path) ?? null }))
    .sort((a, b) => a.path.localeCompare(b.path));
}

/** Members of members get names with dots; elements of a list their number. */
function flat(value: unknown, before = "", found = new Map<string, string>()): Map<string, string> {
  if (Array.isArray(value)) for (const [at, one] of value.entries()) flat(one, `${before}[${at}]`, found);
  else if (isObject(value))
    for (const [key, member] of Object.entries(value)) flat(member, before === "" ? key : `${before}.${key}`, found);
  else if (value !== undefined) found.set(before, typeof value === "string" ? value : JSON.stringify(value));
  return found;
}
