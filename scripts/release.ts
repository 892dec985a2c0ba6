/**
 * `node scripts/release.ts 0.2.0` adds a release to the changelog: every note that is in no release yet, with today's
 * date.
 */
import { readFileSync, writeFileSync } from "node:fs";
import type { Note, Release } from "../src/kinds/changelog/releases.ts";

const FOLDER = "src/kinds/changelog";
const [version = ""] = process.argv.slice(2);
if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error("usage: node scripts/release.ts VERSION, such as 0.2.0");
const notes = JSON.parse(readFileSync(`${FOLDER}/entries.json`, "utf8")) as Note[];
const releases = JSON.parse(readFileSync(`${FOLDER}/releases.json`, "utf8")) as Release[];
const released = new Set(releases.flatMap(({ notes: titles }) => titles));
const added: Release = {
  version,
  date: new Date().toISOString().slice(0, 10),
  notes: notes
    .map(({ title }) => title)
    .filter((title) => !released.has(title))
    .sort(),
};
writeFileSync(`${FOLDER}/releases.json`, `${JSON.stringify([added, ...releases], null, 2)}\n`);
