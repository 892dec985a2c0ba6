/** A tool of the MCP server. Schemas are simple on purpose: clients turn them into their own validators. */
export interface PropertySchema {
  type: "string" | "number" | "integer" | "boolean" | "array" | "object";
  description: string;
  items?: { type: string; properties?: Record<string, unknown>; required?: string[] };
  additionalProperties?: { type: string };
}

export interface Tool<Context = void> {
  name: string;
  description: string;
  properties: Record<string, PropertySchema>;
  required: string[];
  run(
    context: Context,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<Record<string, unknown>> | Record<string, unknown>;
}

type Described = Omit<Tool<never>, "run">;

const property =
  (type: PropertySchema["type"]) =>
  (description: string, more: Partial<PropertySchema> = {}): PropertySchema => ({ type, description, ...more });

export const text = property("string");
export const integer = property("integer");
export const number = property("number");
export const flag = property("boolean");
export const list = property("array");
export const map = property("object");

const TYPE_OF: Record<PropertySchema["type"], (value: unknown) => boolean> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isSafeInteger(value),
  boolean: (value) => typeof value === "boolean",
  array: Array.isArray,
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

/** The first mistake in the arguments; null when there is none. */
export function mistakeIn(tool: Described, args: Record<string, unknown>): string | null {
  for (const name of tool.required)
    if (args[name] === undefined || args[name] === null) return `"${name}" is required.`;
  for (const [name, schema] of Object.entries(tool.properties)) {
    const value = args[name];
    if (value !== undefined && value !== null && !TYPE_OF[schema.type](value))
      return `"${name}" must be of type ${schema.type}.`;
  }
  return null;
}

export const toWire = ({ name, description, properties, required }: Described): Record<string, unknown> => ({
  name,
  description,
  inputSchema: { type: "object", properties, required },
});
