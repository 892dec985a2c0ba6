/** Writes the files that are derived from others; `--check` only says whether they are fresh. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { buildOpenApi } from "../src/contract/openapi.ts";
import { withComponents } from "../src/contract/openapi-components.ts";
import { KINDS, OPERATIONS } from "../src/kinds/index.ts";
import { SCOPES } from "../src/kinds/scopes.ts";
import { buildChangelog } from "./changelog.ts";
import { consoleFiles } from "./console-files.ts";
import { docSections } from "./doc-sections.ts";
import { kitFiles } from "./kit-files.ts";
import { buildScopeTable } from "./scope-table.ts";
import { sdkFiles } from "./sdk/files.ts";

const CHANGELOG = "src/kinds/changelog/entries.json";

const files: Record<string, string> = {
  "openapi.json": `${JSON.stringify(withComponents(buildOpenApi(OPERATIONS, { version: "0", brand: "service", serverUrl: "http://127.0.0.1:8080" })), null, 1)}\n`,
  "docs/scopes.md": buildScopeTable(OPERATIONS, SCOPES),
  ...docSections(),
  ...kitFiles(),
  ...sdkFiles(OPERATIONS),
  ...consoleFiles(KINDS, OPERATIONS),
  [CHANGELOG]: buildChangelog(CHANGELOG, new Date().toISOString().slice(0, 10)),
};

const stale = Object.entries(files).filter(([file, text]) => !existsSync(file) || readFileSync(file, "utf8") !== text);
if (process.argv.includes("--check")) {
  for (const [file] of stale) console.error(`${file} is stale: run npm run generate`);
  process.exit(stale.length > 0 ? 1 : 0);
}
for (const [file, text] of stale) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
