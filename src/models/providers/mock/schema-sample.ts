import { at, isRecord, itemsOf } from "../../../lib/untrusted-json.ts";

/** Schemas may refer to themselves; nobody needs a deeper sample. */
const DEPTH_MAX = 8;

/** A value that a JSON schema accepts, as far as its plain words go; strings carry the given text. */
export function sampleOf(schema: unknown, text: string, depth = 0): unknown {
  if (!isRecord(schema) || depth > DEPTH_MAX) return {};
  if ("const" in schema) return schema.const;
  if ("default" in schema) return schema.default;
  const [firstOfEnum] = itemsOf(schema.enum);
  if (firstOfEnum !== undefined) return firstOfEnum;
  const [alternative] = itemsOf(schema.anyOf ?? schema.oneOf);
  if (alternative !== undefined) return sampleOf(alternative, text, depth + 1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case "string":
      return text;
    case "number":
    case "integer":
      return typeof schema.minimum === "number" ? schema.minimum : 1;
    case "boolean":
      return true;
    case "null":
      return null;
    case "array":
      return [sampleOf(schema.items, text, depth + 1)];
    default:
      return objectSample(schema, text, depth);
  }
}

function objectSample(schema: Record<string, unknown>, text: string, depth: number): Record<string, unknown> {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const required = itemsOf(schema.required).map(String);
  const names = required.length > 0 ? required : Object.keys(properties);
  return Object.fromEntries(names.map((name) => [name, sampleOf(at(properties, name), text, depth + 1)]));
}
