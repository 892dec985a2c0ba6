/** The fields of a form, from the JSON Schema of what is sent. Members that no field can show stay for the text. */
import { isObject, type Json } from "../lib/members.ts";

export type FieldType = "text" | "number" | "flag" | "choice" | "lines";

export interface FormField {
  /** `spec.runtime.memory` */
  path: string;
  type: FieldType;
  hint: string | undefined;
  choices: readonly string[];
  isRequired: boolean;
}

const DEPTH_MAX = 4;

export function fieldsOf(schema: unknown, path = "", isRequired = true, depth = 0): FormField[] {
  if (!isObject(schema) || depth > DEPTH_MAX) return [];
  const own = { path, isRequired, hint: typeof schema.description === "string" ? schema.description : undefined };
  const choices = Array.isArray(schema.enum) ? schema.enum.map(String) : [];
  if (choices.length > 0) return [{ ...own, type: "choice", choices }];
  const type = TYPES[String(schema.type ?? alternative(schema)?.type)];
  if (type !== undefined) return [{ ...own, type, choices }];
  if (schema.type === "array" && isObject(schema.items) && schema.items.type === "string")
    return [{ ...own, type: "lines", choices }];
  if (!isObject(schema.properties)) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties).flatMap(([key, member]) =>
    fieldsOf(member, path === "" ? key : `${path}.${key}`, isRequired && required.includes(key), depth + 1),
  );
}

const TYPES: Readonly<Record<string, FieldType>> = {
  string: "text",
  integer: "number",
  number: "number",
  boolean: "flag",
};

/** The first alternative of a member that takes several types. */
function alternative(schema: Json): Json | null {
  const [first] = Array.isArray(schema.anyOf) ? schema.anyOf : [];
  return isObject(first) ? first : null;
}

/** A copy with one member changed; undefined removes it, and objects that become empty with it. */
export function withMember(value: Json, path: string, next: unknown): Json {
  const [key = "", ...rest] = path.split(".");
  const { [key]: old, ...others } = value;
  if (rest.length === 0) return next === undefined ? others : { ...value, [key]: next };
  const inner = withMember(isObject(old) ? old : {}, rest.join("."), next);
  return Object.keys(inner).length === 0 ? others : { ...value, [key]: inner };
}
