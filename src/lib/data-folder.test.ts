import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeDataFolder } from "./data-folder.ts";
import { UsageError } from "./usage-error.ts";

test("a data folder is made with those above it, for its owner only", (t) => {
  const top = mkdtempSync(join(tmpdir(), "berth-data-folder-"));
  t.after(() => rmSync(top, { recursive: true, force: true }));
  const folder = join(top, "a/b/c");
  makeDataFolder(folder);
  makeDataFolder(folder);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
});

test("a data folder that cannot be made is refused in one line with what to do", (t) => {
  const top = mkdtempSync(join(tmpdir(), "berth-data-folder-"));
  t.after(() => rmSync(top, { recursive: true, force: true }));
  const file = join(top, "file");
  writeFileSync(file, "");
  const refused: [string, RegExp][] = [
    [file, /cannot be used: it is a file/],
    [join(file, "below"), /a part of that path is a file/],
    // Node's own recursive mkdir never returns here.
    ...(existsSync("/proc/self")
      ? [["/proc/berth/data", /the file system refuses new folders there/] as [string, RegExp]]
      : []),
    [join(top, "x".repeat(300)), /the path is too long/],
  ];
  for (const [folder, says] of refused)
    assert.throws(
      () => makeDataFolder(folder),
      (error) =>
        error instanceof UsageError && says.test(error.message) && error.message.includes(folder) && !!error.next,
      folder,
    );
});
