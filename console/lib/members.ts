/** Reading members of resources, whose shape depends on their kind. */
export type Json = Record<string, unknown>;

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The member at a path such as `spec.runtime.image`. */
export function memberAt(value: unknown, path: string): unknown {
  let at = value;
  for (const key of path.split(".")) at = isObject(at) ? at[key] : undefined;
  return at;
}

export function textAt(value: unknown, path: string): string {
  const found = memberAt(value, path);
  if (typeof found === "string") return found;
  return typeof found === "number" || typeof found === "boolean" ? String(found) : "";
}

const NAMES = ["metadata.name", "name", "id", "client_id", "email"];

export const nameOf = (row: unknown): string => NAMES.map((path) => textAt(row, path)).find(Boolean) ?? "";

export const createdAt = (row: unknown): string =>
  textAt(row, "metadata.createdAt") || textAt(row, "createdAt") || textAt(row, "created_at");

/** Most kinds have a status of their own; that of a domain is part of its specification, and runs have a code of HTTP. */
export function statusOf(row: unknown): string {
  const code = memberAt(row, "statusCode");
  if (typeof code === "number") return code >= 200 && code < 400 ? "succeeded" : "failed";
  return textAt(row, "status") || textAt(row, "spec.status");
}
