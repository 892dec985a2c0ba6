/** Further versions of Berth, made of an installed one: its files copied and changed, its packages shared. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** By file: what stands there, and what stands there instead. */
export type Changes = Readonly<Record<string, readonly (readonly [string, string])[]>>;

/** What a server runs from. */
const COPIED = ["bin", "src", "scripts", "docs", "examples", "images", "package.json", "openapi.json"];

export function makeTree(from: string, to: string, version: string, changes: Changes = {}): string {
  mkdirSync(to);
  for (const name of COPIED) cpSync(join(from, name), join(to, name), { recursive: true });
  symlinkSync(join(from, "node_modules"), join(to, "node_modules"));
  const described = JSON.parse(readFileSync(join(to, "package.json"), "utf8")) as object;
  writeFileSync(join(to, "package.json"), JSON.stringify({ ...described, version }));
  for (const [file, replacements] of Object.entries(changes)) {
    let text = readFileSync(join(to, file), "utf8");
    for (const [before, after] of replacements) {
      if (!text.includes(before)) throw new Error(`${file} has no ${before}`);
      text = text.replace(before, () => after);
    }
    writeFileSync(join(to, file), text);
  }
  return to;
}

/** One step more for the database. */
export const ONE_MIGRATION_MORE: Changes = {
  "src/store/database/migrations/index.ts": [
    ["\n];\n", `\n  { id: 900, name: "later", both: ["CREATE TABLE later (id INTEGER)"] },\n];\n`],
  ],
};
/** Fails before anything is looked at. */
export const BROKEN_AT_ONCE: Changes = {
  "src/main.ts": [["export async function main", `throw new Error("broken on purpose");\nexport async function main`]],
};
/** Fails when the database is open and changed. */
export const BROKEN_LATE: Changes = {
  ...ONE_MIGRATION_MORE,
  "src/composition/management.ts": [["  await api.ready();", `  throw new Error("broken late, on purpose");`]],
};
