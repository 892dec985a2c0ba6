/**
 * Every address of the console, made and read in one place.
 *
 *   /{workspace}                                  home
 *   /{workspace}/{plural}                         the list of a kind
 *   /{workspace}/{plural}/{name}                  a resource; its parts follow: /sandboxes/box/previews/web
 *   /{workspace}/-/{page}                         a page that is no kind: logs, usage, access …
 *   /{workspace}/-/new/{plural}                   the form of a new resource, also below another one
 */
import type { KindFacts } from "./facts.ts";

export const PAGES = ["templates", "images", "egress", "logs", "usage", "nodes", "access", "settings"] as const;
export type PageName = (typeof PAGES)[number];

/** A collection: its kind and the names of the resources that contain it, outermost first. */
export interface Collection {
  kind: KindFacts;
  parents: readonly string[];
}

export type Place =
  | { page: "home"; workspace: string }
  | ({ page: "list"; workspace: string } & Collection)
  | ({ page: "item"; workspace: string; name: string } & Collection)
  | ({ page: "new"; workspace: string } & Collection)
  | { page: PageName; workspace: string }
  | { page: "start" }
  | { page: "nowhere"; workspace: string };

/** Places inside a workspace. */
export type InsidePlace = Exclude<Place, { page: "start" }>;

export function createPlaces(base: string, kinds: readonly KindFacts[]) {
  const byName = new Map(kinds.map((kind) => [kind.name, kind]));
  const lineOf = (kind: KindFacts): KindFacts[] => {
    const parent = kind.within === null ? undefined : byName.get(kind.within);
    return parent ? [...lineOf(parent), kind] : [kind];
  };
  const words = (parts: readonly string[]): string => parts.map(encodeURIComponent).join("/");
  const collectionWords = ({ kind, parents }: Collection): string[] =>
    lineOf(kind).flatMap(({ plural }, at) => (at < parents.length ? [plural, parents[at] ?? ""] : [plural]));
  const below = (workspace: string, ...parts: string[]): string => `${base}/${words([workspace, ...parts])}`;

  function read(pathname: string): Place {
    const parts = pathname.slice(base.length).split("/").filter(Boolean).map(decodeURIComponent);
    const [workspace, ...rest] = parts;
    if (workspace === undefined) return { page: "start" };
    if (rest.length === 0) return { page: "home", workspace };
    const nowhere: Place = { page: "nowhere", workspace };
    if (rest[0] !== "-") return collectionAt(rest, workspace) ?? nowhere;
    if (rest[1] === "new") {
      const found = collectionAt(rest.slice(2), workspace);
      return found?.page === "list" ? { ...found, page: "new" } : nowhere;
    }
    const page = PAGES.find((name) => name === rest[1]);
    return page === undefined ? nowhere : { page, workspace };
  }

  type Found = Extract<Place, { page: "list" | "item" }>;
  function collectionAt(parts: readonly string[], workspace: string): Found | null {
    let kind: KindFacts | undefined;
    const names: string[] = [];
    for (const [at, part] of parts.entries()) {
      if (at % 2 === 1) names.push(part);
      else {
        const within: string | null = kind?.name ?? null;
        kind = kinds.find((one) => one.plural === part && one.within === within);
        if (!kind) return null;
      }
    }
    if (!kind) return null;
    if (parts.length % 2 === 1) return { page: "list", workspace, kind, parents: names };
    return { page: "item", workspace, kind, parents: names.slice(0, -1), name: names.at(-1) ?? "" };
  }

  return {
    read,
    lineOf,
    /** The path parameters of a collection or, with a name, of a resource in it. */
    params: ({ kind, parents }: Collection, name?: string): Record<string, string> =>
      Object.fromEntries(
        lineOf(kind).flatMap(({ param }, at) => {
          const value = at < parents.length ? parents[at] : name;
          return value === undefined ? [] : [[param, value]];
        }),
      ),
    home: (workspace: string): string => below(workspace),
    page: (workspace: string, name: PageName): string => below(workspace, "-", name),
    list: (workspace: string, collection: Collection): string => below(workspace, ...collectionWords(collection)),
    item: (workspace: string, collection: Collection, name: string): string =>
      below(workspace, ...collectionWords(collection), name),
    create: (workspace: string, collection: Collection): string =>
      below(workspace, "-", "new", ...collectionWords(collection)),
  };
}

/** The path of a collection below `/v0`. */
export const collectionPath = ({ kind, parents }: Collection): string => {
  let at = 0;
  return kind.path.replace(/\{\w+\}/g, () => encodeURIComponent(parents[at++] ?? ""));
};

export const itemPath = (collection: Collection, name: string): string =>
  `${collectionPath(collection)}/${encodeURIComponent(name)}`;
