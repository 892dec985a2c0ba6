/** Two pages of each kind's own list, put together. The cost grows with the number of kinds, not of resources. */
import type { z } from "zod";
import { PlatformError } from "../../contract/errors.ts";
import { parseListQuery, Q_MIN, searchWord } from "../../contract/list-query.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { kindsAsked } from "../listable.ts";
import { isOver } from "../place.ts";
import { type Implementation, implement, workspaceOf } from "../port.ts";
import { LIMIT_DEFAULT, LIMIT_MAX, searchFind } from "./operations.ts";

export const searchHandlers: readonly Implementation[] = [
  implement(searchFind, async (call, deps) => {
    const { resources } = deps.store;
    const workspace = workspaceOf(call).name;
    const word = searchWord(call.query.q);
    if (word === null) throw new PlatformError("invalid_parameter", `q must have at least ${Q_MIN} characters.`);
    const limit = Math.min(call.query.limit ?? LIMIT_DEFAULT, LIMIT_MAX);
    const counts = await resources.statusCountsIn(workspace);
    // The search index is kept for each list, so resources inside others are found in the list of their container.
    const kinds = kindsAsked(call.query.kinds, call.caller).filter(({ name, within }) => !within && counts.has(name));
    const newest = parseListQuery({ q: word, limit });
    const named = parseListQuery({ sort: "name:asc", from: word, limit });
    const pages = await Promise.all(
      kinds.map(async (kind) => {
        const scope = { workspace, kind: kind.name, parent: "" };
        const [{ items, hasMore }, next] = await Promise.all([
          resources.list(scope, newest),
          resources.list(scope, named),
        ]);
        // Names that begin with the text come first in the answer, also when many newer resources contain it.
        const begin = next.items.filter(({ name }) => name.startsWith(word));
        const found = new Map([...items, ...begin].map((resource) => [resource.uid, resource]));
        const standing = [...found.values()].filter((resource) => !isOver(kind, resource, deps));
        return { hasMore, found: standing.map((resource) => ({ rank: rankOf(resource, word), kind, resource })) };
      }),
    );
    const all = pages.flatMap(({ found }) => found);
    all.sort((a, b) => a.rank - b.rank || (a.resource.uid < b.resource.uid ? 1 : -1));
    return {
      data: all.slice(0, limit).map(({ kind, resource }) => ({ plural: kind.plural, ...toHit(resource) })),
      meta: { hasMore: all.length > limit || pages.some(({ hasMore }) => hasMore) },
    };
  }),
];

function rankOf({ name }: Resource, word: string): number {
  const lower = name.toLowerCase();
  if (lower === word) return 0;
  if (lower.startsWith(word)) return 1;
  return lower.includes(word) ? 2 : 3;
}

type Hit = z.input<typeof searchFind.response>["data"][number];

function toHit({ kind, name, uid, status, metadata, createdAt, updatedAt }: Resource): Omit<Hit, "plural"> {
  const { displayName, labels } = metadata;
  return {
    ...{ kind, name, uid },
    ...(displayName ? { displayName } : {}),
    ...(labels ? { labels } : {}),
    ...(status === null ? {} : { status }),
    createdAt: toIso(createdAt),
    updatedAt: toIso(updatedAt),
  };
}
