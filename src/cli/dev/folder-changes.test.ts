/** Every edit is told, however a tool makes it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { watchFolder } from "./folder-changes.ts";

/** A watched folder; `told` waits for the next change. */
function watched(t: TestContext) {
  const base = mkdtempSync(join(tmpdir(), "berth-watch-"));
  const folder = join(base, "code");
  mkdirSync(join(folder, "lib"), { recursive: true });
  mkdirSync(join(folder, "node_modules"));
  mkdirSync(join(folder, ".cache"));
  writeFileSync(join(folder, "index.js"), "// 0\n");
  writeFileSync(join(folder, "lib/part.js"), "// 0\n");
  const all: string[] = [];
  let heard = Promise.withResolvers<string>();
  const watcher = watchFolder(folder, (path) => {
    all.push(path);
    heard.resolve(path);
  });
  t.after(() => {
    watcher.close();
    rmSync(base, { recursive: true, force: true });
  });
  return {
    base,
    folder,
    all,
    async after(edit: () => void): Promise<string> {
      heard = Promise.withResolvers<string>();
      edit();
      return heard.promise;
    },
  };
}

test("five files in a row that are renamed over the old one are told, in both folders", async (t) => {
  const { base, folder, all, after } = watched(t);
  for (const name of ["index.js", "lib/part.js"]) {
    for (let round = 1; round <= 5; round += 1)
      assert.equal(await after(() => execFileSync("sed", ["-i", `s/.*/\\/\\/ ${round}/`, join(folder, name)])), name);
    for (let round = 1; round <= 5; round += 1) {
      writeFileSync(join(base, "new"), `// moved ${round}\n`);
      assert.equal(await after(() => renameSync(join(base, "new"), join(folder, name))), name);
    }
  }
  assert.deepEqual(new Set(all), new Set(["index.js", "lib/part.js"]));
});

test("folders that come, are replaced and go are watched", async (t) => {
  const { base, folder, after } = watched(t);
  for (let round = 1; round <= 5; round += 1) {
    const replaced = await after(() => {
      rmSync(join(folder, "lib"), { recursive: true });
      mkdirSync(join(folder, "lib/deep"), { recursive: true });
      writeFileSync(join(folder, "lib/deep/new.js"), `// ${round}`);
    });
    assert.match(replaced, /^lib\/(?:deep\/new|part)\.js$/);
    const edited = await after(() => writeFileSync(join(folder, "lib/deep/new.js"), `// ${round} again`));
    assert.equal(edited, "lib/deep/new.js");
  }
  assert.equal(await after(() => renameSync(join(folder, "lib"), join(base, "away"))), "lib/deep/new.js");
});

test("what comes and goes, what editors keep, and folders of packages and tools are not told", async (t) => {
  const { folder, all, after } = watched(t);
  await after(() => {
    for (const name of ["sedXyz", "node_modules/x.js", ".cache/x", ".index.js.swp", "index.js~"])
      writeFileSync(join(folder, name), "x");
    mkdirSync(join(folder, ".git/refs"), { recursive: true });
    writeFileSync(join(folder, ".git/refs/x"), "x");
    rmSync(join(folder, "sedXyz"));
    writeFileSync(join(folder, "lib/part.js"), "// changed\n");
  });
  await after(() => writeFileSync(join(folder, ".env"), "A=1"));
  assert.deepEqual(all, ["lib/part.js", ".env"]);
});
