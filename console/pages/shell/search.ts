/** Resources whose name contains a text, over the kinds that are used most. */
import { useAnswer } from "../../api/query.ts";
import { listPage } from "../../api/resources.ts";
import { go } from "../../lib/location.ts";
import { nameOf } from "../../lib/members.ts";
import { titleOf } from "../../lib/titles.ts";
import { places, top } from "../../views/places.ts";

/** A line of the palette. */
export interface Choice {
  title: string;
  about: string;
  choose(): void;
}

const SEARCHED = ["sandbox", "agent", "function", "job", "application", "model", "volume", "drive"];
/** The server searches from two characters on. */
const LENGTH_MIN = 2;
const EACH_MAX = 5;

export function useFound(workspace: string, typed: string): Choice[] {
  const q = typed.trim();
  const { data = [] } = useAnswer({
    key: ["search", workspace, q],
    enabled: q.length >= LENGTH_MIN,
    ask: async (signal) => {
      const pages = await Promise.all(
        SEARCHED.map(async (kind) => {
          const page = await listPage(workspace, top(kind), { q, status: "", sort: "" }, null, signal);
          return page.data.slice(0, EACH_MAX).map((row) => ({ kind, name: nameOf(row) }));
        }),
      );
      return pages.flat();
    },
  });
  return data.map(({ kind, name }) => ({
    title: name,
    about: titleOf(kind),
    choose: () => go(places.item(workspace, top(kind), name)),
  }));
}
