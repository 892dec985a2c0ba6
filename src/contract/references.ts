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
  /** Only one resource at a time may name it. */
  exclusive?: true;
}

/** One resource's tie to another, or to a word that only one may have. */
export interface Link {
  /** Where it stands, for messages. */
  field: string;
  kind: string;
  name: string;
  exclusive: boolean;
  /** `claim`: a word of the whole platform, such as a host name, that nothing has to exist for. */
  to: "resource" | "claim";
}

/** What is wrong with a link to a resource that is not there; see `invalidField` for the whole sentence. */
export const missingTarget = ({ kind, name }: Pick<Link, "kind" | "name">): string =>
  `${kind} '${name}' does not exist in this workspace`;

/** Words of the whole platform that one resource may have; the gateway finds it by them. */
export const CLAIMS = {
  /** A host name that a user brought. */
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
