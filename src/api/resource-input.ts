/** What a client may decide of a resource, taken out of the body it sent. */
import { PlatformError } from "../contract/errors.ts";
import type { Kind } from "../contract/kind.ts";
import { MASK } from "../contract/secret-fields.ts";
import type { Input } from "../kinds/port.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import type { Resource } from "../store/resources/resource.ts";

type Json = Record<string, unknown>;

const COMMON_METADATA = new Set(["displayName", "labels", "externalId"]);

/** Keeps the kind's metadata, and the spec without its read-only members. */
export function readInput(kind: Kind, body: unknown, current: Resource | null): Input {
  const { metadata, spec } = kind.flat ? unflattened(kind, body as Json, kind.flat.name) : (body as Input);
  const isNamed = metadata.name !== undefined && metadata.name !== "";
  if (current && isNamed && metadata.name !== current.name) {
    const field = kind.flat?.name ?? "metadata.name";
    throw new PlatformError("immutable_field", `${field} cannot change: this is '${current.name}'.`);
  }
  const input: Input = { metadata: {}, spec: { ...spec } };
  for (const key in metadata)
    if (COMMON_METADATA.has(key) || (kind.metadata && Object.hasOwn(kind.metadata, key)))
      input.metadata[key] = metadata[key];
  // An empty one is none: the platform chooses, or the address has said it.
  if (isNamed) input.metadata.name = metadata.name as string;
  else if (current) input.metadata.name = current.name;
  for (const key of kind.readOnlySpec) {
    delete input.spec[key];
    if (current?.spec[key] !== undefined) input.spec[key] = current.spec[key];
  }
  return input;
}

function unflattened(kind: Kind, body: Json, nameKey: string): Input {
  const name = body[nameKey] as string | undefined;
  const members = Object.keys(kind.spec.shape).filter((key) => body[key] !== undefined);
  return {
    metadata: name === undefined ? {} : { name },
    spec: Object.fromEntries(members.map((key) => [key, body[key]])),
  };
}

/** An immutable member that a replacement leaves out stays as it is; one that differs is refused. */
export function checkImmutable(kind: Kind, draft: Input, current: Resource): void {
  for (const path of kind.immutable) {
    const keys = path.split(".");
    const last = keys.pop() ?? "";
    const [from, to] = [holderOf(current, keys), holderOf(draft, keys)];
    if (!from || !to || from[last] === undefined) continue;
    if (to[last] === undefined || to[last] === MASK) to[last] = from[last];
    else if (canonicalJson(to[last]) !== canonicalJson(from[last])) {
      throw new PlatformError(
        "immutable_field",
        `${path} cannot change after creation. Create another ${kind.name} instead.`,
      );
    }
  }
}

const holderOf = (root: object, keys: string[]): Json | undefined =>
  keys.reduce<Json | undefined>((node, key) => node?.[key] as Json | undefined, root as Json);
