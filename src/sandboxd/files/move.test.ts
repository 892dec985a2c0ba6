import assert from "node:assert/strict";
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { skip, startSandboxd } from "../../../test/sandboxd-harness.ts";

test("files and folders are moved", { skip }, async (t) => {
  await using d = await startSandboxd();
  const at = (name: string): string => join(d.workDir, name);
  const move = (from: string, body: unknown) => d.ask("POST", `/filesystem-move/${from}`, { body });

  await t.test("a file gets another name, and the folders that it needs", async () => {
    writeFileSync(at("a.txt"), "a", { mode: 0o640 });
    const { status, json } = await move("a.txt", { destination: "new/folder/b.txt" });
    assert.deepEqual([status, json.path], [200, at("new/folder/b.txt")]);
    assert.deepEqual([existsSync(at("a.txt")), readFileSync(at("new/folder/b.txt"), "utf8")], [false, "a"]);
    assert.equal(statSync(at("new/folder/b.txt")).mode & 0o777, 0o640);
  });

  await t.test("into a folder it keeps its name; a folder moves with what is in it; a link moves itself", async () => {
    mkdirSync(at("shelf"));
    mkdirSync(at("box/inner"), { recursive: true });
    writeFileSync(at("box/inner/c"), "c");
    symlinkSync("/etc/hostname", at("link"));
    assert.equal((await move("box", { destination: at("shelf") })).json.path, at("shelf/box"));
    assert.equal((await move(encodeURIComponent(at("link")), { destination: "shelf/" })).json.path, at("shelf/link"));
    assert.equal(readFileSync(at("shelf/box/inner/c"), "utf8"), "c");
    assert.ok(lstatSync(at("shelf/link")).isSymbolicLink());
  });

  await t.test("what is there is replaced only when asked, and a folder never", async () => {
    writeFileSync(at("one"), "1");
    writeFileSync(at("two"), "2");
    assert.equal((await move("one", { destination: "two" })).status, 409);
    assert.equal(readFileSync(at("two"), "utf8"), "2");
    assert.equal((await move("one", { destination: "two", overwrite: true })).status, 200);
    assert.equal(readFileSync(at("two"), "utf8"), "1");
    mkdirSync(at("shelf/two"));
    assert.equal((await move("two", { destination: "shelf", overwrite: true })).status, 409);
  });

  await t.test("what makes no sense is refused", async () => {
    mkdirSync(at("outer"));
    assert.equal((await move("missing", { destination: "x" })).status, 404);
    assert.equal((await move("outer", {})).status, 400);
    assert.equal((await move("outer", { destination: "outer/below" })).status, 422);
    assert.equal((await move("%2F", { destination: "x" })).status, 422);
    assert.equal((await move("outer", { destination: "outer" })).status, 200);
    assert.ok(statSync(at("outer")).isDirectory());
  });

  await t.test("to another file system", { skip: otherFileSystem(d.workDir) }, async () => {
    const away = `/dev/shm/move-${process.pid}`;
    t.after(() => rmSync(away, { recursive: true, force: true }));
    mkdirSync(at("far/deep"), { recursive: true });
    writeFileSync(at("far/deep/x"), "x", { mode: 0o600 });
    assert.equal((await move("far", { destination: away })).status, 200);
    assert.deepEqual([existsSync(at("far")), readFileSync(`${away}/deep/x`, "utf8")], [false, "x"]);
    assert.equal((await move(encodeURIComponent(`${away}/deep/x`), { destination: "back" })).status, 200);
    assert.deepEqual([existsSync(`${away}/deep/x`), statSync(at("back")).mode & 0o777], [false, 0o600]);
  });
});

const otherFileSystem = (folder: string): string | false =>
  statSync("/dev/shm", { throwIfNoEntry: false })?.dev === statSync(folder).dev || !existsSync("/dev/shm")
    ? "needs a second file system at /dev/shm"
    : false;
