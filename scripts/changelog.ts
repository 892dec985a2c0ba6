/** The notes of the changelog, made of the files under changes/: one per user-visible change. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Note } from "../src/kinds/changelog/releases.ts";

/** A note keeps the date under which it was first written down; a new one gets today's. */
export function buildChangelog(previousFile: string, today: string): string {
  const previous = existsSync(previousFile) ? (JSON.parse(readFileSync(previousFile, "utf8")) as Note[]) : [];
  const dates = new Map(previous.map(({ title, date }) => [title, date]));
  const entries = globSync("changes/*.md").map((file): Note => {
    const words = basename(file, ".md").replaceAll("-", " ");
    const title = words.charAt(0).toUpperCase() + words.slice(1);
    return { title, content: readFileSync(file, "utf8").trim(), date: dates.get(title) ?? today };
  });
  entries.sort((a, b) => (a.date === b.date ? (a.title < b.title ? -1 : 1) : a.date < b.date ? 1 : -1));
  return `${JSON.stringify(entries, null, 2)}\n`;
}
