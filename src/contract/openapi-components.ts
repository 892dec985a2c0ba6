/**
 * Schemas that occur more than once, moved to `components/schemas` under a name: clients that are generated from
 * openapi.json then have one type for each, and the file is a fraction of its size.
 */

type Json = Record<string, unknown>;

/** Shorter schemas are easier to read where they are used. */
const LENGTH_MIN = 300;
const REF = "#/components/schemas/";

interface Found {
  schema: Json;
  count: number;
  name: string;
}

export function withComponents(api: Json): Json {
  const { paths, components } = api as { paths: Record<string, Record<string, Json>>; components: Json };
  const found = new Map<string, Found>();
  const visit = (schema: Json, name: string): void => {
    const text = JSON.stringify(schema);
    if (text.length < LENGTH_MIN) return;
    const before = found.get(text);
    if (before) before.count += 1;
    else found.set(text, { schema, count: 1, name });
    // The members of a schema that was seen before were counted then.
    if (!before) for (const [key, child] of childrenOf(schema)) visit(child, nameOf(name, key));
  };
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods)))
    for (const { schema, role } of schemasOf(operation))
      visit(schema, `${pascal(String(operation.operationId))}${role}`);

  const names = new Map<string, string>();
  const taken = new Set(Object.keys(components.schemas as Json));
  for (const [text, { count, name, schema }] of found) {
    if (count < 2 || schema.type !== "object") continue;
    const free = unused(
      KIND_NAMES.reduce((short, [pattern, by]) => short.replace(pattern, by), name),
      taken,
    );
    taken.add(free);
    names.set(text, free);
  }
  const refer = (schema: Json): Json => {
    const name = names.get(JSON.stringify(schema));
    return name === undefined ? within(schema, refer) : { $ref: `${REF}${name}` };
  };
  const schemas = [...names].map(([text, name]) => [name, within(JSON.parse(text) as Json, refer)] as const);
  return {
    ...api,
    paths: mapped(paths, (methods) => mapped(methods, (operation) => inOperation(operation, refer))),
    components: {
      ...components,
      schemas: { ...(components.schemas as Json), ...Object.fromEntries(schemas.sort(([a], [b]) => (a < b ? -1 : 1))) },
    },
  };
}

/** The answer of a kind is called as the kind, whichever operation gives it, and its members after it. */
const KIND_NAMES: readonly (readonly [RegExp, string])[] = [
  [/^(\w+?)ListAnswer(?:Data)?Item/, "$1"],
  [/^(\w+?)(?:Get|Create|Update|Delete)Answer/, "$1"],
  [/^(\w+?)(Create|Update)Body/, "$1$2"],
];

const nameOf = (owner: string, key: string): string => (key === "" ? owner : `${owner}${pascal(key)}`);

const pascal = (word: string): string =>
  word
    .split(/[^A-Za-z0-9]+/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join("");

function unused(name: string, taken: ReadonlySet<string>): string {
  for (let count = 1; ; count += 1) {
    const tried = count === 1 ? name : `${name}${count}`;
    if (!taken.has(tried)) return tried;
  }
}

interface Held {
  schema: Json;
  role: "Body" | "Answer";
}

function schemasOf(operation: Json): Held[] {
  const contents = [
    ...contentsOf(operation.requestBody).map((schema) => ({ schema, role: "Body" as const })),
    ...Object.values(operation.responses as Json).flatMap((response) =>
      contentsOf(response).map((schema) => ({ schema, role: "Answer" as const })),
    ),
  ];
  return contents.filter(({ schema }) => schema.$ref === undefined);
}

const contentsOf = (holder: unknown): Json[] =>
  Object.values(((holder as { content?: Json } | undefined)?.content ?? {}) as Record<string, { schema: Json }>).map(
    ({ schema }) => schema,
  );

const inOperation = (operation: Json, change: (schema: Json) => Json): Json => {
  const inContent = <T>(holder: T): T => {
    const { content } = holder as { content?: Record<string, { schema: Json }> };
    if (!content) return holder;
    return { ...holder, content: mapped(content, (media) => ({ ...media, schema: change(media.schema) })) };
  };
  return {
    ...operation,
    ...(operation.requestBody ? { requestBody: inContent(operation.requestBody) } : {}),
    responses: mapped(operation.responses as Record<string, Json>, inContent),
  };
};

/** The schemas directly inside a schema, with the name of the member that holds each. */
function childrenOf(schema: Json): [key: string, child: Json][] {
  const children: [string, Json][] = [];
  within(schema, (child, key) => {
    children.push([key, child]);
    return child;
  });
  return children;
}

/** A copy of a schema with the schemas directly inside it changed. */
function within(schema: Json, change: (child: Json, key: string) => Json): Json {
  return mapped(schema, (value, key) => {
    if (key === "properties" || key === "patternProperties") return mapped(value as Record<string, Json>, change);
    if (key === "items" && isSchema(value)) return change(value, "Item");
    if (key === "additionalProperties" && isSchema(value)) return change(value, "Value");
    if (/^(anyOf|oneOf|allOf)$/.test(key)) return (value as Json[]).map((one) => change(one, ""));
    return value;
  });
}

const isSchema = (value: unknown): value is Json => typeof value === "object" && value !== null;

const mapped = <T, U>(record: Record<string, T>, change: (value: T, key: string) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
