/**
 * Where a kind keeps secrets, written as small paths, and the one walk over them that sealing, masking and restoring
 * share.
 *
 *   spec.secret.*                              every value of a map
 *   spec.runtime.envs[name?secret].value       `value` of those items of a list whose `secret` is true, keyed by name
 *   spec.triggers[id].configuration.callbackSecret
 *
 * A list item is keyed by the named field (or its index), so that a secret keeps its place when the list is reordered.
 */
export const MASK = "********";

type Json = Record<string, unknown>;
type Visit = (key: string, value: string) => string | undefined;

/** Calls `visit` for every secret string in `document`; the returned text replaces it, undefined removes it. */
export function visitSecrets(document: unknown, paths: readonly string[], visit: Visit): void {
  for (const path of paths) walk(document, path.split("."), "", visit);
}

/** Takes the secrets out of a document, leaving the mask, and returns them by key. */
export function extractSecrets(document: unknown, paths: readonly string[]): Record<string, string> {
  const secrets: Record<string, string> = {};
  visitSecrets(document, paths, (key, value) => {
    secrets[key] = value;
    return MASK;
  });
  return secrets;
}

/** Puts stored secrets back; a field without a stored secret keeps its value. */
export function restoreSecrets(document: unknown, paths: readonly string[], secrets: Record<string, string>): void {
  visitSecrets(document, paths, (key, value) => (Object.hasOwn(secrets, key) ? secrets[key] : value));
}

/** Clients write back what they read: a mask in a new document means the stored value, or nothing if there is none. */
export function keepMasked(document: unknown, paths: readonly string[], stored: Record<string, string>): void {
  visitSecrets(document, paths, (key, value) => (value === MASK ? stored[key] : value));
}

function walk(node: unknown, segments: string[], prefix: string, visit: Visit): void {
  const [segment, ...rest] = segments;
  if (segment === undefined || node === null || typeof node !== "object") return;
  const list = /^(\w+)\[(\w*)(?:\?(\w+))?\]$/.exec(segment);
  if (list) {
    const items = (node as Json)[list[1] ?? ""];
    if (!Array.isArray(items)) return;
    for (const [index, item] of items.entries()) {
      if (item === null || typeof item !== "object") continue;
      if (list[3] && item[list[3]] !== true) continue;
      const id = list[2] && typeof item[list[2]] === "string" ? item[list[2]] : String(index);
      walk(item, rest, `${prefix}/${list[1]}/${id}`, visit);
    }
    return;
  }
  const keys = segment === "*" ? Object.keys(node) : [segment];
  for (const key of keys) step(node as Json, key, rest, `${prefix}/${key}`, visit);
}

function step(node: Json, key: string, rest: string[], prefix: string, visit: Visit): void {
  const value = node[key];
  if (rest.length > 0) {
    walk(value, rest, prefix, visit);
  } else if (typeof value === "string") {
    const next = visit(prefix, value);
    if (next === undefined) delete node[key];
    else node[key] = next;
  }
}
