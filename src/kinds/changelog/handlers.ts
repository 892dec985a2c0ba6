import { readFileSync } from "node:fs";
import { join } from "node:path";
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
    entries ??= JSON.parse(readFileSync(join(import.meta.dirname, "entries.json"), "utf8")) as Entry[];
    return { entries };
  }),
];
