/**
 * `node scripts/release.ts 0.2.0` adds a release to the changelog: every note that is in no release yet, with today's
 * date. It writes the packages of this release to dist/sbom-0.2.0.json, as CycloneDX.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
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
mkdirSync("dist", { recursive: true });
// Before the changelog: a release without this file is none.
writeFileSync(`dist/sbom-${version}.json`, sbomOf(version));
writeFileSync(`${FOLDER}/releases.json`, `${JSON.stringify([added, ...releases], null, 2)}\n`);

/** npm names the version of package.json, which may be that of the release before. */
function sbomOf(version: string): string {
  const args = ["run", "-s", "sbom", "--", "--package-lock-only"];
  const said = execFileSync("npm", args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  const { name, version: before } = JSON.parse(readFileSync("package.json", "utf8")) as Record<string, string>;
  const own = new Map(["", "pkg:npm/"].map((head) => [`${head}${name}@${before}`, `${head}${name}@${version}`]));
  const bom = JSON.parse(said, (_, value: unknown) => own.get(String(value)) ?? value) as {
    metadata: { component: { version: string } };
  };
  bom.metadata.component.version = version;
  return `${JSON.stringify(bom, null, 2)}\n`;
}
