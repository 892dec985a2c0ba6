/** What the pages of the repository name is there: files, tests and guides. Links between guides: guide-pages.test.ts. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const FRONT_PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md"];

test("links of the pages at the front lead to files", () => {
  for (const page of FRONT_PAGES)
    for (const [, target = ""] of read(page).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g))
      assert.ok(existsSync(join(ROOT, target)), `${page} links to ${target}, which is not there`);
});

test("the threat model names sources and tests that exist", () => {
  const page = read("docs/security.md");
  const named = [...page.matchAll(/`((?:src|test)\/[\w./-]+)`/g)].map(([, file = ""]) => file);
  assert.ok(named.length > 0);
  for (const file of named) assert.ok(existsSync(join(ROOT, file)), `docs/security.md names ${file}`);
});

test("guides use one set of names in their commands, and say where the names come from", () => {
  for (const guide of globSync("docs/*.md", { cwd: ROOT })) {
    const page = read(guide);
    const commands = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block).join("");
    assert.doesNotMatch(commands, /\$(?:KEY|URL|api)\b/, `${guide}: BERTH_API_KEY, BERTH_URL and API are the names`);
    if (/^call |\$(?:API|BERTH_URL|BERTH_API_KEY)\b/m.test(commands))
      assert.match(page, /tour\.md#what-the-examples-use|^## What the examples use$/m, guide);
  }
});
