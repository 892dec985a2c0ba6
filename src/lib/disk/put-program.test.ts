import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { putProgram } from "./put-program.ts";

const folder = mkdtempSync(join(tmpdir(), "berth-program-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const notRoot = process.getuid?.() !== 0 && "needs root to give a file another owner; run the tests as root";

function program(name: string, mode = 0o755): string {
  const path = join(folder, name);
  writeFileSync(path, `program ${name}`);
  chmodSync(path, mode);
  return path;
}

function put(from: string): { before: Stats; now: Stats; text: string } {
  const to = `${from}.there`;
  putProgram(from, to);
  return { before: statSync(from), now: statSync(to), text: readFileSync(to, "utf8") };
}

test("a program of the server itself is shared, not copied", () => {
  const { before, now, text } = put(program("own"));
  assert.deepEqual([now.ino, text], [before.ino, "program own"]);
});

test("a link leads to the program, and the program is shared", () => {
  program("behind");
  symlinkSync("behind", join(folder, "link"));
  const { before, now, text } = put(join(folder, "link"));
  assert.deepEqual([now.ino, text], [before.ino, "program behind"]);
});

test("a program with another mode is copied, and the original keeps its mode", () => {
  const { before, now, text } = put(program("strict", 0o700));
  assert.notEqual(now.ino, before.ino);
  assert.deepEqual([now.mode & 0o7777, before.mode & 0o7777, text], [0o755, 0o700, "program strict"]);
});

test("a program of another user is copied, and the copy belongs to the server", { skip: notRoot }, () => {
  const path = program("foreign");
  chownSync(path, 1000, 1000);
  const { before, now, text } = put(path);
  assert.deepEqual([before.uid, now.uid, text], [1000, 0, "program foreign"]);
});
