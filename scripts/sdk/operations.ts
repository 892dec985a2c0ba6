/** The operation list as the SDKs need it: named types, and for each operation its call. */
import { schemaOf } from "../../src/contract/openapi.ts";
import type { Operation } from "../../src/contract/operation.ts";
import { type Member, type Shape, shapeOf } from "./shape.ts";

export interface SdkType {
  name: string;
  about: string;
  shape: Extract<Shape, { type: "object" }>;
}

/** A shape, or the name of a type that has it. */
export type TypeUse = { name: string; list: boolean } | { shape: Shape };

export interface SdkOperation {
  id: string;
  method: string;
  path: string;
  summary: string;
  params: readonly string[];
  query: readonly Member[];
  body: TypeUse | null;
  bodyRequired: boolean;
  /** Media type of a body of bytes. */
  stream: string | null;
  result: TypeUse;
  /** The result is a page of items of this type. */
  item: TypeUse | null;
}

export interface SdkModel {
  types: readonly SdkType[];
  operations: readonly SdkOperation[];
}

export function sdkModel(all: readonly Operation[]): SdkModel {
  // The SDKs read answers of JSON that end.
  const operations = all.filter(({ events, bytes }) => !events && !bytes);
  const types = new Map<string, SdkType>();
  const taken = new Set<string>();
  /** The first operation that uses a shape names it, with the first of the names that no other shape has. */
  const use: Use = (shape, names, about) => {
    if (shape.type === "array" && shape.items.type === "object") {
      const used = use(shape.items, names, about);
      return "name" in used ? { ...used, list: true } : used;
    }
    if (shape.type !== "object") return { shape };
    const text = JSON.stringify(shape);
    const name = types.get(text)?.name ?? names.find((each) => !taken.has(each));
    if (name === undefined) throw new Error(`${about} needs a name of its own: ${names.join(", ")} are taken.`);
    if (!types.has(text)) types.set(text, { name, about, shape });
    taken.add(name);
    return { name, list: false };
  };
  const ordered = [...operations].sort((a, b) => rank(a) - rank(b));
  const described = new Map(ordered.map((operation) => [operation.id, describe(operation, use)]));
  return {
    types: [...types.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    operations: operations.flatMap(({ id }) => described.get(id) ?? []),
  };
}

/** Types are named by reading one resource and by creating one, where there are such operations. */
const rank = ({ verb }: Operation): number => (verb === "get" ? 0 : verb === "create" ? 1 : 2);

type Use = (shape: Shape, names: readonly string[], about: string) => TypeUse;

function describe(operation: Operation, use: Use): SdkOperation {
  const { id, method, path, summary, params, verb, kind } = operation;
  const name = pascal(id);
  const noun = kind && verb ? pascal(kind) : null;
  const response = shapeOf(operation.status === 204 ? { type: "null" } : schemaOf(operation.response, "output"));
  const items = operation.paged ? itemsOf(response) : null;
  const item = items && use(items, [...(noun ? [`${noun}Record`] : []), `${name}Item`], `An item of ${id}.`);
  return {
    id,
    method,
    path,
    summary,
    params,
    query: queryOf(operation),
    body: operation.body
      ? use(
          shapeOf(schemaOf(operation.body, "input")),
          [...(noun ? [`${noun}${verb === "update" ? "Update" : "Input"}`] : []), `${name}Body`],
          `The body of ${id}.`,
        )
      : null,
    bodyRequired: operation.body !== undefined && !operation.bodyOptional,
    stream: operation.stream ?? null,
    result:
      item ??
      use(response, [...(noun && verb !== "list" ? [`${noun}Record`] : []), `${name}Result`], `The answer of ${id}.`),
    item,
  };
}

/** Types as the server reads them, so `true` and not its text; a parameter with a default may be left out. */
function queryOf({ query }: Operation): readonly Member[] {
  if (!query) return [];
  const required = new Set(
    membersOf(shapeOf(schemaOf(query, "input"))).flatMap((member) => (member.required ? [member.name] : [])),
  );
  return membersOf(shapeOf(schemaOf(query, "output"))).map((member) => ({
    ...member,
    required: required.has(member.name),
  }));
}

const membersOf = (shape: Shape): readonly Member[] => (shape.type === "object" ? shape.members : []);

function itemsOf(page: Shape): Shape | null {
  const data = membersOf(page).find(({ name }) => name === "data")?.shape;
  return data?.type === "array" ? data.items : null;
}

const pascal = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
