/** Types of the wire, between the JSON schema of an operation and the text of a language. Rules of validation are left out. */

export type Shape =
  | { type: "unknown" | "null" | "string" | "number" | "boolean" }
  | { type: "literal"; values: readonly string[] }
  | { type: "array"; items: Shape }
  | { type: "map"; values: Shape }
  | { type: "union"; of: readonly Shape[] }
  | { type: "object"; members: readonly Member[] };

export interface Member {
  name: string;
  shape: Shape;
  required: boolean;
  about: string;
}

type Json = Record<string, unknown>;

const UNKNOWN: Shape = { type: "unknown" };

export function shapeOf(schema: unknown): Shape {
  if (!isJson(schema)) return UNKNOWN;
  if (typeof schema.const === "string") return { type: "literal", values: [schema.const] };
  if (Array.isArray(schema.enum)) return { type: "literal", values: schema.enum.map(String) };
  if (Array.isArray(schema.anyOf)) return union(schema.anyOf.map(shapeOf));
  switch (schema.type) {
    case "object":
      return objectShape(schema);
    case "array":
      return { type: "array", items: shapeOf(schema.items) };
    case "integer":
      return { type: "number" };
    case "number":
    case "string":
    case "boolean":
    case "null":
      return { type: schema.type };
    default:
      return UNKNOWN;
  }
}

function objectShape(schema: Json): Shape {
  const properties = isJson(schema.properties) ? Object.entries(schema.properties) : [];
  if (properties.length === 0) return { type: "map", values: shapeOf(schema.additionalProperties) };
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return {
    type: "object",
    members: properties.map(([name, property]) => ({
      name,
      shape: shapeOf(property),
      required: required.has(name),
      about: isJson(property) && typeof property.description === "string" ? property.description : "",
    })),
  };
}

/** A name that may also be empty is a string: the rules of both are left out. */
function union(of: readonly Shape[]): Shape {
  const plain = of.some(({ type }) => type === "string") ? of.filter(({ type }) => type !== "literal") : of;
  const distinct = [...new Map(plain.map((shape) => [JSON.stringify(shape), shape])).values()];
  const [first = UNKNOWN] = distinct;
  if (distinct.some(({ type }) => type === "unknown")) return UNKNOWN;
  return distinct.length === 1 ? first : { type: "union", of: distinct };
}

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
