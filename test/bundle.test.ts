/** The bundle that an install makes: the whole program runs from it, until a source changes. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { findBun } from "../src/runtime/sandboxd-build.ts";
import { startServer } from "./berth-process.ts";
import { eventually } from "./sandboxd-harness.ts";

const ROOT = join(import.meta.dirname, "..");
const skip = findBun() ? false : "Bun is not installed for this platform: npm install --include=optional";
const root = mkdtempSync(join(tmpdir(), "berth-bundle-"));
after(() => rmSync(root, { recursive: true, force: true }));

const node = (...args: string[]): string =>
  execFileSync(process.execPath, args, { cwd: root, encoding: "utf8" }).trim();
const mainModule = (): string =>
  node("--input-type=module", "--eval", 'console.log((await import("./bin/bundle.js")).mainModule())');

test("a server runs from a fresh bundle, and sources that have changed run themselves", { skip }, async () => {
  for (const part of ["bin", "docs", "examples", "package.json", "scripts", "src"]) {
    cpSync(join(ROOT, part), join(root, part), { recursive: true, preserveTimestamps: true });
  }
  mkdirSync(join(root, "node_modules"));
  for (const name of readdirSync(join(ROOT, "node_modules"))) {
    if (name !== ".cache") symlinkSync(join(ROOT, "node_modules", name), join(root, "node_modules", name));
  }
  assert.match(mainModule(), /src\/main\.ts$/);
  assert.equal(node("scripts/warm-cache.js"), "");
  assert.match(mainModule(), /\.cache\/berth\/bundle-[0-9a-f]+\/main\.mjs$/);

  const server = await startServer({ root, dataDir: join(root, "data"), env: { BERTH_POOL_SIZE: "0" } });
  try {
    const [, key = ""] = server.stderr().match(/API key {4}(\S+)/) ?? [];
    const ask = async (path: string, body?: object): Promise<string> => {
      const answer = await fetch(`${server.url}${path}`, {
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
      });
      assert.equal(answer.status, 200, path);
      return answer.text();
    };
    // What lies beside the code: guides, templates, the list of changes.
    assert.match(await ask("/docs/tour"), /<h1/);
    assert.ok(JSON.parse(await ask("/v0/templates")).length >= 6);
    assert.match(await ask("/v0/changelog"), /"title"/);
    // Reports of what was used have a thread, which is a file of its own.
    await ask("/v0/volumes", { metadata: { name: "used" }, spec: { size: 8 } });
    const [{ id }] = JSON.parse(await ask("/v0/accounts"));
    const window = "startTime=2026-01-01T00:00:00Z&endTime=2037-01-01T00:00:00Z&resolution=monthly";
    await eventually(async () =>
      /volume/.test(await ask(`/v0/accounts/${id}/metrics?groupBy=resource_type&${window}`)),
    );
  } finally {
    await server.stop();
  }

  utimesSync(join(root, "src/lib/root.ts"), 1, 1);
  assert.match(mainModule(), /src\/main\.ts$/);
});
