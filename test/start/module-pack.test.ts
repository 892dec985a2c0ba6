/** What runs is what the files say: the module pack only saves Node the way to them. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";

const PACK = "node_modules/.cache/berth/modules";

/** A small project that is packed as ours is. */
function project(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), "pack "));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const write = (path: string, text: string | Buffer): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const node = (...args: string[]): string =>
    execFileSync(process.execPath, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  for (const path of ["bin/module-pack.js", "scripts/module-pack.js"]) {
    write(path, "");
    copyFileSync(join(import.meta.dirname, "../..", path), join(root, path));
  }
  write("package.json", '{"type":"module"}');
  write("bin/run.js", 'import { usePack } from "./module-pack.js";\nusePack();\nawait import("../src/main.ts");\n');
  write("src/main.ts", 'import { word } from "./words/word.ts";\nimport late from "late";\nconsole.log(word, late);\n');
  write("src/words/word.ts", 'export const word: string = "one";\n');
  write("node_modules/.package-lock.json", '{"version":1}');
  write("node_modules/late/package.json", '{"type":"module","exports":"./lib/index.js"}');
  write("node_modules/late/lib/index.js", 'export { default } from "./number.js";\n');
  write("node_modules/late/lib/number.js", "export default 1;\n");
  const pack = (...args: string[]) => node("scripts/module-pack.js", ...args);
  return { root, write, node, pack, run: () => node("bin/run.js") };
}

test("sources and packages are loaded from the pack", (t) => {
  const { root, write, pack, run } = project(t);
  assert.equal(run(), "one 1", "without a pack");
  pack();
  const packed = readFileSync(join(root, PACK), "utf8");
  assert.ok(packed.includes("node_modules/late/lib/number.js"));
  write(PACK, packed.replace('"one"', '"ONE"'));
  assert.equal(run(), "ONE 1", "the text in the pack is what runs");
});

test("a source that changed is what runs, also when its length stays", (t) => {
  const { root, write, pack, run } = project(t);
  pack();
  write("src/words/word.ts", 'export const word: string = "two";\n');
  assert.equal(run(), "two 1");
  write("src/words/word.ts", 'import { more } from "./more.ts";\nexport const word: string = more;\n');
  write("src/words/more.ts", 'export const more: string = "more";\n');
  assert.equal(run(), "more 1", "a file that the pack does not have");
  pack();
  assert.equal(run(), "more 1");
  const { atime } = statSync(join(root, "src/words/more.ts"));
  write("src/words/more.ts", 'export const more: string = "less";\n');
  utimesSync(join(root, "src/words/more.ts"), atime, new Date(0));
  assert.equal(run(), "less 1", "an older file in its place");
});

test("packages that were installed anew are looked for again", (t) => {
  const { write, pack, run } = project(t);
  pack();
  write("node_modules/late/package.json", '{"type":"module","exports":"./lib/other.js"}');
  write("node_modules/late/lib/other.js", "export default 2;\n");
  write("node_modules/.package-lock.json", '{"version":"next"}');
  assert.equal(run(), "one 2");
});

test("half of a pack, or one of another format, is no pack", (t) => {
  const { root, write, pack, run } = project(t);
  pack();
  const packed = readFileSync(join(root, PACK));
  for (const half of [packed.subarray(0, 40), packed.subarray(0, 3), Buffer.from("other"), Buffer.alloc(100)]) {
    write(PACK, half);
    assert.equal(run(), "one 1");
  }
});

test("a pack, or a folder on the way to it, that others can write is not run", (t) => {
  const { root, write, pack, run } = project(t);
  pack();
  const packed = readFileSync(join(root, PACK), "utf8");
  write(PACK, packed.replace('"one"', '"BAD"'));
  assert.equal(run(), "BAD 1", "as long as only the owner writes it");
  for (const path of [PACK, dirname(PACK), dirname(dirname(PACK)), "node_modules"]) {
    const place = join(root, path);
    const { mode } = statSync(place);
    chmodSync(place, mode | (path === PACK ? 0o020 : 0o002));
    assert.equal(run(), "one 1", path);
    chmodSync(place, mode);
  }
  chmodSync(join(root, PACK), 0o664);
  chmodSync(root, 0o775);
  assert.equal(run(), "BAD 1", "the group may write the sources as well");
});

test("a pack of another user is not run", {
  skip: process.geteuid?.() === 0 ? false : "files are given to another user: run as root",
}, (t) => {
  const { root, write, pack, run } = project(t);
  pack();
  write(PACK, readFileSync(join(root, PACK), "utf8").replace('"one"', '"BAD"'));
  for (const path of [PACK, dirname(PACK), dirname(dirname(PACK))]) {
    chownSync(join(root, path), 65_534, 65_534);
    assert.equal(run(), "one 1", path);
    chownSync(join(root, path), 0, 0);
  }
  assert.equal(run(), "BAD 1");
});

test("an install over another one packs its own sources, also when all files have one time", (t) => {
  const { root, write, pack, run } = project(t);
  const old = new Date(499_162_500_000);
  const source = join(root, "src/words/word.ts");
  utimesSync(source, old, old);
  pack();
  write("src/words/word.ts", 'export const word: string = "two";\n');
  utimesSync(source, old, old);
  pack("--anew");
  assert.equal(run(), "two 1");
});
