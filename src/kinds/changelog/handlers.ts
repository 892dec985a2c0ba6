import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../lib/root.ts";
import { type Implementation, implement } from "../port.ts";
import { changelogGet } from "./operations.ts";

interface Entry {
  title: string;
  content: string;
  date: string;
}

let entries: Entry[] | null = null;

export const changelogHandlers: readonly Implementation[] = [
  implement(changelogGet, async () => {
    // Made from the notes under changes/ by `npm run generate`.
    entries ??= JSON.parse(readFileSync(join(ROOT, "src/kinds/changelog/entries.json"), "utf8")) as Entry[];
    return { entries };
  }),
];
