/** Resources of all kinds whose name or labels contain a text. */
import { call } from "../../api/call.ts";
import { useAnswer } from "../../api/query.ts";
import { go } from "../../lib/location.ts";
import { titleOf } from "../../lib/titles.ts";
import { places, top } from "../../views/places.ts";

/** A line of the palette. */
export interface Choice {
  title: string;
  about: string;
  choose(): void;
}

/** The server searches from two characters on. */
const LENGTH_MIN = 2;
const FOUND_MAX = "12";

export function useFound(workspace: string, typed: string): Choice[] {
  const q = typed.trim();
  const { data } = useAnswer({
    key: ["search", workspace, q],
    enabled: q.length >= LENGTH_MIN,
    ask: (signal) =>
      call<{ data: { kind: string; name: string }[] }>({
        path: "/search",
        query: { q, limit: FOUND_MAX },
        workspace,
        signal,
      }),
  });
  return (data?.data ?? []).map(({ kind, name }) => ({
    title: name,
    about: titleOf(kind),
    choose: () => go(places.item(workspace, top(kind), name)),
  }));
}
