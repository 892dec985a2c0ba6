import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../lib/root.ts";
import { type Implementation, implement } from "../port.ts";
import { changelogGet } from "./operations.ts";
import { byRelease, type Note, type Release } from "./releases.ts";

let entries: Note[] | null = null;

const read = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, "src/kinds/changelog", file), "utf8"));

export const changelogHandlers: readonly Implementation[] = [
  implement(changelogGet, async () => {
    // entries.json is made from the notes under changes/ by `npm run generate`, releases.json by scripts/release.ts.
    entries ??= byRelease(read("entries.json") as Note[], read("releases.json") as Release[]);
    return { entries };
  }),
];
