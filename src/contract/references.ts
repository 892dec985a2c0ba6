/**
 * Where a kind names other resources, written as small paths like those of secrets:
 *
 *   spec.policies[]                             every item of a list
 *   spec.volumes[type!=ephemeral].name          a member of the items, except those whose `type` says otherwise
 *
 * What is named must exist in the same workspace, and cannot be deleted while it is named.
 */
export interface Reference {
  path: string;
  kind: string;
  /** Only one resource at a time may name the target. */
  exclusive?: true;
}

/** A link from a resource to another one, or to a word that only one resource may hold. */
export interface Link {
  /** Path of the field, for messages. */
  field: string;
  kind: string;
  name: string;
  exclusive: boolean;
  /** `claim`: a platform-wide word, such as a host name, without a target resource. */
  to: "resource" | "claim";
}

/** The rule violated by a link to a missing resource; `invalidField` makes the whole sentence. */
export const missingTarget = ({ kind, name }: Pick<Link, "kind" | "name">): string =>
  `${kind} '${name}' does not exist in this workspace`;

/** Kinds of platform-wide words that one resource may hold; the gateway finds the resource by them. */
export const CLAIMS = {
  /** A user's own host name. */
  host: "host",
  /** `{workspace}/{prefix}` of a preview. */
  previewPrefix: "preview-prefix",
  /** `{workspace}/{path}` of a trigger. */
  triggerPath: "trigger-path",
} as const;

export function linksOf(document: unknown, references: readonly Reference[]): Link[] {
  if (references.length === 0) return [];
  return references.flatMap(({ path, kind, exclusive = false }) =>
    walk(document, path.split("."), "").map(({ field, name }) => ({ field, kind, name, exclusive, to: "resource" })),
  );
}

type Found = { field: string; name: string };

function walk(node: unknown, segments: string[], at: string): Found[] {
  const [segment, ...rest] = segments;
  if (segment === undefined) return typeof node === "string" && node !== "" ? [{ field: at, name: node }] : [];
  if (node === null || typeof node !== "object") return [];
  const list = /^(\w+)\[(?:(\w+)!=(\w+))?\]$/.exec(segment);
  const key = list?.[1] ?? segment;
  const value = (node as Record<string, unknown>)[key];
  const field = at === "" ? key : `${at}.${key}`;
  if (!list) return walk(value, rest, field);
  if (!Array.isArray(value)) return [];
  const [, , unless, is] = list;
  return value.flatMap((item: unknown, index) => {
    const skipped = unless !== undefined && (item as Record<string, unknown> | null)?.[unless] === is;
    return skipped ? [] : walk(item, rest, `${field}[${index}]`);
  });
}
