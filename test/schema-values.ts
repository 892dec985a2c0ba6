/** Values for a JSON schema: good ones that satisfy it, and bad ones that a hostile client would send instead. */
import fc from "./properties.ts";

export interface JsonSchema {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: JsonSchema | boolean;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  maxItems?: number;
  format?: string;
}

/** Texts that have broken parsers, databases, paths and logs before. */
export const NASTY = [
  "",
  " ",
  "\0",
  "a\0b",
  "\u{1f600}",
  "..",
  "../../etc/passwd",
  "%2e%2e%2f",
  "//",
  "'; DROP TABLE resources; --",
  "{{7*7}}",
  "__proto__",
  "constructor",
  "\ud800",
  "a".repeat(5000),
  "\n\r\n",
  "<script>",
  "-1",
  "1e309",
  "NaN",
  "null",
  "true",
  "[]",
  "{}",
  "\u202e",
  "ß",
  "İ",
];

const WORD = fc.stringMatching(/^[a-z][a-z0-9]{0,10}$/);

export function goodValue(schema: JsonSchema, depth = 0): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants) return fc.oneof(...variants.map((variant) => goodValue(variant, depth)));
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "string") return goodText(schema);
  if (type === "integer" || type === "number") {
    const min = Math.ceil(schema.minimum ?? (schema.exclusiveMinimum === undefined ? 0 : schema.exclusiveMinimum + 1));
    return fc.integer({
      min: Math.max(min, -1000),
      max: Math.max(Math.min(schema.maximum ?? 1000, 100_000), Math.max(min, -1000)),
    });
  }
  if (type === "boolean") return fc.boolean();
  if (type === "array")
    return depth > 4
      ? fc.constant([])
      : fc.array(goodValue(schema.items ?? {}, depth + 1), { maxLength: Math.min(schema.maxItems ?? 2, 2) });
  if (type === "object" || schema.properties) return goodObject(schema, depth);
  return fc.oneof(WORD, fc.integer(), fc.boolean());
}

function goodText(schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.pattern)
    return fc
      .stringMatching(new RegExp(schema.pattern, "u"), { size: "xsmall" })
      .map((text) => text.slice(0, schema.maxLength ?? 60))
      .filter((text) => text.length >= (schema.minLength ?? 0));
  if (schema.format === "uri") return WORD.map((word) => `https://${word}.example.test/`);
  if (schema.format === "email") return WORD.map((word) => `${word}@example.test`);
  if (schema.format === "date-time") return fc.constant("2026-11-15T00:00:00.000Z");
  return WORD;
}

function goodObject(schema: JsonSchema, depth: number): fc.Arbitrary<unknown> {
  const properties = Object.entries(schema.properties ?? {});
  if (properties.length === 0) {
    const value =
      typeof schema.additionalProperties === "object" ? goodValue(schema.additionalProperties, depth + 1) : WORD;
    return fc.dictionary(WORD, value, { maxKeys: 2 });
  }
  const shape = Object.fromEntries(
    properties.map(([key, property]) => [key, depth > 5 ? WORD : goodValue(property, depth + 1)]),
  );
  return fc.record(shape, { requiredKeys: schema.required ?? [] });
}

/** Anything at all: wrong types, nasty texts, deep nesting. */
export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(...NASTY),
  fc.constant(null),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant([]),
  fc.constant({}),
  fc.constant(nested(60)),
  fc.jsonValue({ maxDepth: 3 }),
);

function nested(levels: number): unknown {
  return levels === 0 ? 1 : { a: nested(levels - 1) };
}

/** A good body with one part replaced by something else. */
export const spoiled = (schema: JsonSchema): fc.Arbitrary<unknown> =>
  fc
    .tuple(goodValue(schema), fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }), anyValue)
    .map(([good, path, bad]) => replaceAt(structuredClone(good), path, bad));

function replaceAt(root: unknown, path: number[], bad: unknown): unknown {
  const [step = 0, ...rest] = path;
  if (root === null || typeof root !== "object") return bad;
  const keys = Object.keys(root);
  const key = keys[step % Math.max(keys.length, 1)];
  if (key === undefined) return bad;
  const node = root as Record<string, unknown>;
  node[key] = rest.length === 0 ? bad : replaceAt(node[key], rest, bad);
  return root;
}
