import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "../..");
const CHANGELOG = "src/kinds/changelog";

test("a release has its packages beside it: each with its digest, and tools marked as such", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "berth-release-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  for (const file of [
    "package.json",
    "package-lock.json",
    ...["entries", "releases"].map((n) => `${CHANGELOG}/${n}.json`),
  ])
    cpSync(join(ROOT, file), join(dir, file));
  execFileSync(process.execPath, [join(ROOT, "scripts/release.ts"), "98.7.6"], { cwd: dir, stdio: "pipe" });
  const read = (file: string) => JSON.parse(readFileSync(join(dir, file), "utf8"));
  assert.equal(read(`${CHANGELOG}/releases.json`)[0].version, "98.7.6");
  const { bomFormat, metadata, components, dependencies } = read("dist/sbom-98.7.6.json");
  assert.deepEqual([bomFormat, metadata.component.version], ["CycloneDX", "98.7.6"]);
  assert.ok(dependencies.some(({ ref }: { ref: string }) => ref === metadata.component["bom-ref"]));
  type Component = { name: string; hashes?: object[]; properties: { name: string; value: string }[] };
  const listed = new Map((components as Component[]).map((one) => [one.name, one]));
  const isTool = (name: string): boolean | undefined =>
    listed.get(name)?.properties.some((each) => each.name === "cdx:npm:package:development" && each.value === "true");
  for (const name of Object.keys(read("package.json").dependencies)) {
    assert.ok(listed.get(name)?.hashes?.length, `${name} is listed with its digest`);
    assert.equal(isTool(name), false, name);
  }
  assert.equal(isTool("typescript"), true);
});
