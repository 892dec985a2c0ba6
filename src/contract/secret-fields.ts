/**
 * Where a kind keeps secrets, written as small paths, and the one walk over them that sealing, masking and restoring
 * share.
 *
 *   spec.secret.*                              every value of a map
 *   spec.runtime.envs[name?secret].value       `value` of those items of a list whose `secret` is true, keyed by name
 *   spec.triggers[id].configuration.callbackSecret
 *   spec.network.proxy.routing[=destinations].secrets.*
 *
 * A list item is keyed by the named field (or its index), so that a secret keeps its place when the list is reordered.
 * Items with `=` are stored by index and recognised by that field when a client writes masks back: a secret stays with
 * its destinations, wherever in the list they stand, and never goes to others.
 */
export const MASK = "********";

type Json = Record<string, unknown>;
/** `identity` recognises the same secret in another version of the document. */
type Visit = (key: string, value: string, identity: string) => string | undefined;

/** Where a walk stands. */
interface Place {
  key: string;
  identity: string;
}

/** Calls `visit` for every secret string in `document`; the returned text replaces it, undefined removes it. */
export function visitSecrets(document: unknown, paths: readonly string[], visit: Visit): void {
  for (const path of paths) walk(document, path.split("."), { key: "", identity: "" }, visit);
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

/**
 * Clients write back what they read: a mask in a new document means the stored value, or nothing if there is none.
 * Returns the keys of masks whose list item is not in `current`, the document that `stored` belongs to.
 */
export function keepMasked(
  document: unknown,
  paths: readonly string[],
  stored: Record<string, string>,
  current: unknown,
): string[] {
  const known = new Map<string, string | undefined>();
  visitSecrets(current, paths, (key, value, identity) => {
    known.set(identity, stored[key]);
    return value;
  });
  const lost: string[] = [];
  visitSecrets(document, paths, (key, value, identity) => {
    if (value !== MASK) return value;
    if (key !== identity && known.get(identity) === undefined) lost.push(key);
    return known.get(identity);
  });
  return lost;
}

const LIST = /^(?<list>\w+)\[(?<recognised>=?)(?<field>\w*)(?:\?(?<only>\w+))?\]$/;

function walk(node: unknown, segments: string[], place: Place, visit: Visit): void {
  const [segment, ...rest] = segments;
  if (segment === undefined || node === null || typeof node !== "object") return;
  const { list = "", recognised = "", field = "", only = "" } = LIST.exec(segment)?.groups ?? {};
  if (list !== "") {
    const items = (node as Json)[list];
    if (!Array.isArray(items)) return;
    const seen = new Map<string, number>();
    for (const [index, item] of items.entries()) {
      if (item === null || typeof item !== "object") continue;
      const same = identityOf(item[field]);
      const count = seen.get(same) ?? 0;
      seen.set(same, count + 1);
      if (only !== "" && item[only] !== true) continue;
      const id = recognised === "" && typeof item[field] === "string" ? item[field] : String(index);
      const identity = recognised === "" ? id : `${same}#${count}`;
      walk(item, rest, below(place, `${list}/${id}`, `${list}/${identity}`), visit);
    }
    return;
  }
  const keys = segment === "*" ? Object.keys(node) : [segment];
  for (const key of keys) step(node as Json, key, rest, below(place, key, key), visit);
}

const below = ({ key, identity }: Place, word: string, sameWord: string): Place => ({
  key: `${key}/${word}`,
  identity: `${identity}/${sameWord}`,
});

/** Lists of words are the same in any order and any case. */
const identityOf = (value: unknown): string =>
  JSON.stringify(Array.isArray(value) ? value.map((word) => String(word).toLowerCase()).sort() : (value ?? null));

function step(node: Json, key: string, rest: string[], place: Place, visit: Visit): void {
  const value = node[key];
  if (rest.length > 0) {
    walk(value, rest, place, visit);
  } else if (typeof value === "string") {
    const next = visit(place.key, value, place.identity);
    if (next === undefined) delete node[key];
    else node[key] = next;
  }
}
