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

export interface Found {
  choices: Choice[];
  /** The server has not answered for this text yet. */
  isAsked: boolean;
}

export function useFound(workspace: string, typed: string): Found {
  const q = typed.trim();
  const isAsked = q.length >= LENGTH_MIN;
  const { data, error } = useAnswer({
    key: ["search", workspace, q],
    enabled: isAsked,
    ask: (signal) =>
      call<{ data: { kind: string; name: string }[] }>({
        path: "/search",
        query: { q, limit: FOUND_MAX },
        workspace,
        signal,
      }),
  });
  const choices = (data?.data ?? []).map(({ kind, name }) => ({
    title: name,
    about: titleOf(kind),
    choose: () => go(places.item(workspace, top(kind), name)),
  }));
  return { choices, isAsked: isAsked && data === undefined && error === null };
}
