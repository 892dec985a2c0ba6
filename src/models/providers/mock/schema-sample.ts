import { at, isRecord, itemsOf } from "../../../lib/untrusted-json.ts";

/** Schemas may refer to themselves; nobody needs a deeper sample. */
const DEPTH_MAX = 8;

/** Characters of all strings together, unless the text itself is longer: a schema may have many strings. */
const CHARACTERS_MAX = 1_000_000;

/**
 * A value that a JSON schema accepts, as far as its plain words go. Strings carry the given text, until there is no
 * room for more.
 */
export function sampleOf(schema: unknown, text: string): unknown {
  let room = Math.max(CHARACTERS_MAX, text.length);
  const nextText = (): string => {
    const part = text.slice(0, room);
    room -= part.length;
    return part;
  };
  return sampleValue(schema, nextText, 0);
}

function sampleValue(schema: unknown, nextText: () => string, depth: number): unknown {
  if (!isRecord(schema) || depth > DEPTH_MAX) return {};
  if ("const" in schema) return schema.const;
  if ("default" in schema) return schema.default;
  const [firstOfEnum] = itemsOf(schema.enum);
  if (firstOfEnum !== undefined) return firstOfEnum;
  const [alternative] = itemsOf(schema.anyOf ?? schema.oneOf);
  if (alternative !== undefined) return sampleValue(alternative, nextText, depth + 1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case "string":
      return nextText();
    case "number":
    case "integer":
      return typeof schema.minimum === "number" ? schema.minimum : 1;
    case "boolean":
      return true;
    case "null":
      return null;
    case "array":
      return [sampleValue(schema.items, nextText, depth + 1)];
    default:
      return objectSample(schema, nextText, depth);
  }
}

function objectSample(schema: Record<string, unknown>, nextText: () => string, depth: number): Record<string, unknown> {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const required = itemsOf(schema.required).map(String);
  const names = required.length > 0 ? required : Object.keys(properties);
  return Object.fromEntries(names.map((name) => [name, sampleValue(at(properties, name), nextText, depth + 1)]));
}
