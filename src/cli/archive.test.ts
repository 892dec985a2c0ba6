import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { archiveOf, contextOf } from "./archive.ts";

function folderWith(t: TestContext, files: Record<string, string>): string {
  const dir = mkdtempSync(join(tmpdir(), "berth-archive-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(dir, dirname(path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
  return dir;
}

/** Names of the entries. */
function namesIn(archive: Buffer): string[] {
  const plain = gunzipSync(archive);
  const names: string[] = [];
  for (let at = 0; plain[at] !== 0 && at < plain.length; ) {
    names.push(plain.toString("utf8", at, plain.indexOf(0, at)));
    const size = Number.parseInt(plain.toString("latin1", at + 124, at + 135), 8);
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return names.sort();
}

const FILES = { "index.js": "", "dist/a.js": "", "node_modules/b/c.js": "", ".env": "", ".git/config": "" };

test("code without a Dockerfile is sent without what builds make", (t) => {
  assert.deepEqual(namesIn(archiveOf(folderWith(t, FILES))), ["index.js"]);
});

test("with a Dockerfile, .dockerignore says what is left out; secrets and history never go along", (t) => {
  const dir = folderWith(t, { ...FILES, Dockerfile: "" });
  assert.deepEqual(namesIn(archiveOf(dir)), ["Dockerfile", "dist/a.js", "index.js", "node_modules/b/c.js"]);
  const own = folderWith(t, { ...FILES, Dockerfile: "", ".berthignore": "" });
  assert.ok(namesIn(archiveOf(own)).includes(".env"), "a list of the project's own replaces the usual one");
});

test("the context of an image build is the folder without what .dockerignore names, exceptions included", (t) => {
  const dir = folderWith(t, { ...FILES, "docs/a.md": "", "docs/b.md": "" });
  writeFileSync(join(dir, ".dockerignore"), "docs\n!docs/b.md\n**/*.js\n.git\n");
  assert.deepEqual(namesIn(contextOf(dir, "Dockerfile")), [".dockerignore", ".env", "docs/b.md"]);
});
