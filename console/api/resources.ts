/** The five verbs of every kind. */
import { createdAt, nameOf } from "../lib/members.ts";
import { type Collection, collectionPath, itemPath } from "../lib/places.ts";
import { call, send } from "./call.ts";
import { isLive } from "./live.ts";
import { type Question, queries, useAnswer } from "./query.ts";

export interface ListQuery {
  q: string;
  status: string;
  sort: string;
}

/** Where a page of a list begins. */
export interface Spot {
  /** A time or a name, as the order wants it; empty = the beginning of the list. */
  from: string;
  /** The page ends at `from` instead. */
  isBefore: boolean;
  /** Of the page before; only with the same `from`. */
  cursor: string;
}

export const spotAt = (from: string): Spot => ({ from, isBefore: false, cursor: "" });

export interface Page {
  data: unknown[];
  /** The page after this one; null at the end. */
  next: Spot | null;
  /** The page before this one; null at the beginning. */
  previous: Spot | null;
  /** All matches, where the server counts them. */
  total: number | null;
}

const PAGE_SIZE = "200";

interface Paged {
  data?: unknown[];
  meta?: { nextCursor?: string | null; hasMore?: boolean; total?: number };
}

export async function listPage(
  workspace: string,
  collection: Collection,
  query: ListQuery,
  spot: Spot,
  signal?: AbortSignal,
): Promise<Page> {
  const { from, isBefore, cursor } = spot;
  const sort = isBefore ? BACKWARDS[query.sort] : query.sort;
  const asked = collection.kind.paged ? { ...query, sort: sort ?? "", limit: PAGE_SIZE, from, cursor } : {};
  const answer = await call<unknown[] | Paged>({
    path: collectionPath(collection),
    query: asked,
    workspace,
    ...(signal ? { signal } : {}),
  });
  if (Array.isArray(answer)) return { data: answer, next: null, previous: null, total: answer.length };
  const { data = [], meta = {} } = answer;
  const total = meta.total ?? null;
  const rows = isBefore ? data.toReversed() : data;
  const [first] = rows;
  const before: Spot | null =
    first === undefined ? null : { from: edgeOf(first, query.sort), isBefore: true, cursor: "" };
  // A page that holds nothing but rows of its own edge would lead to itself.
  const canGoBack = isBefore ? meta.hasMore === true && before?.from !== from : from !== "" || cursor !== "";
  return {
    ...{ data: rows, total, previous: canGoBack ? before : null },
    next: isBefore ? spotAt(from) : meta.nextCursor ? { from, isBefore, cursor: meta.nextCursor } : null,
  };
}

const BACKWARDS: Readonly<Record<string, string>> = {
  ...{ "": "createdAt:asc", "createdAt:desc": "createdAt:asc", "createdAt:asc": "createdAt:desc" },
  ...{ "name:asc": "name:desc", "name:desc": "name:asc" },
};

export const isByName = (sort: string): boolean => sort.startsWith("name");

/** The place of a row in the order, as `from` takes it. */
const edgeOf = (row: unknown, sort: string): string => (isByName(sort) ? nameOf(row) : createdAt(row));

/** The places of the first and the last row. */
export async function endsOf(
  workspace: string,
  collection: Collection,
  query: ListQuery,
  signal: AbortSignal,
): Promise<readonly [first: string, last: string] | null> {
  const edge = async (sort: string): Promise<string | null> => {
    const path = collectionPath(collection);
    const { data = [] } = await call<Paged>({ path, query: { ...query, sort, limit: "1" }, workspace, signal });
    return data.length === 0 ? null : edgeOf(data[0], query.sort);
  };
  const [first, last] = await Promise.all([edge(query.sort), edge(BACKWARDS[query.sort] ?? "")]);
  return first === null || last === null ? null : [first, last];
}

/** The key of everything that is known about one collection. */
export const collectionKey = (workspace: string, { kind, parents }: Collection): readonly unknown[] => [
  "kind",
  kind.name,
  workspace,
  ...parents,
];

export interface Found {
  resource: unknown;
  etag: string | null;
}

const ITEM_EVERY_MS = 3000;

export const askResource = (workspace: string, collection: Collection, name: string): Question<Found> => ({
  key: [...collectionKey(workspace, collection), "item", name],
  ask: async (signal) => {
    const response = await send({ path: itemPath(collection, name), workspace, signal });
    return { resource: await response.json(), etag: response.headers.get("etag") };
  },
});

export const useResource = (workspace: string, collection: Collection, name: string) =>
  useAnswer({ ...askResource(workspace, collection, name), everyMs: isLive.value ? undefined : ITEM_EVERY_MS });

export const changed = (workspace: string, collection: Collection): Promise<void> =>
  queries.invalidateQueries({ queryKey: collectionKey(workspace, collection) });

export async function createResource(workspace: string, collection: Collection, body: unknown): Promise<unknown> {
  const made = await call<unknown>({ method: "POST", path: collectionPath(collection), body, workspace });
  await changed(workspace, collection);
  return made;
}

export async function updateResource(
  workspace: string,
  collection: Collection,
  name: string,
  body: unknown,
  etag: string | null,
): Promise<void> {
  const headers = etag === null ? {} : { "if-match": etag };
  await call({ method: "PUT", path: itemPath(collection, name), body, workspace, headers });
  await changed(workspace, collection);
}

export async function deleteResource(workspace: string, collection: Collection, name: string): Promise<void> {
  await call({ method: "DELETE", path: itemPath(collection, name), workspace });
  await changed(workspace, collection);
}
