/** The five verbs of every kind. */
import { type Collection, collectionPath, itemPath } from "../lib/places.ts";
import { call, send } from "./call.ts";
import { isLive } from "./live.ts";
import { queries, useAnswer } from "./query.ts";

export interface ListQuery {
  q: string;
  status: string;
  sort: string;
}

export interface Page {
  data: unknown[];
  /** Cursor of the next page; null at the end. */
  next: string | null;
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
  cursor: string | null,
  signal?: AbortSignal,
): Promise<Page> {
  const asked = collection.kind.paged ? { ...query, limit: PAGE_SIZE, cursor: cursor ?? "" } : {};
  const answer = await call<unknown[] | Paged>({
    path: collectionPath(collection),
    query: asked,
    workspace,
    ...(signal ? { signal } : {}),
  });
  if (Array.isArray(answer)) return { data: answer, next: null, total: answer.length };
  const { data = [], meta = {} } = answer;
  return { data, next: meta.nextCursor || null, total: meta.total ?? null };
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

export const useResource = (workspace: string, collection: Collection, name: string) =>
  useAnswer<Found>({
    key: [...collectionKey(workspace, collection), "item", name],
    everyMs: isLive.value ? undefined : ITEM_EVERY_MS,
    ask: async (signal) => {
      const response = await send({ path: itemPath(collection, name), workspace, signal });
      return { resource: await response.json(), etag: response.headers.get("etag") };
    },
  });

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
