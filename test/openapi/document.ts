/** Reads openapi.json as programs that know no references do. */

/** The document with every reference to its own schemas replaced by the schema. */
export function inlined<T>(api: T): T {
  const { schemas } = (api as { components: { schemas: Record<string, unknown> } }).components;
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve);
    if (typeof value !== "object" || value === null) return value;
    const { $ref } = value as { $ref?: unknown };
    if (typeof $ref === "string") return resolve(schemas[$ref.replace("#/components/schemas/", "")]);
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, resolve(member)]));
  };
  return resolve(api) as T;
}
