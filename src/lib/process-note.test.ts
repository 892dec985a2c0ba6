import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { identityOf, leaveNote, leaveWish, runningNotes, takeWish } from "./process-note.ts";

const dataDir = mkdtempSync(join(tmpdir(), "berth-note-"));
after(() => rmSync(dataDir, { recursive: true }));

test("a note is found while its process runs, and taken away by it", () => {
  const remove = leaveNote(dataDir, { url: "http://x", startedAt: "now" });
  const [note] = runningNotes(dataDir);
  assert.equal(note?.pid, process.pid);
  assert.equal(note?.url, "http://x");
  remove();
  assert.deepEqual(runningNotes(dataDir), []);
});

test("notes of processes that are gone, or whose number is another's now, are removed", async () => {
  const child = spawn(process.execPath, ["-e", ""]);
  const pid = child.pid ?? 0;
  const identity = identityOf(pid);
  await once(child, "exit");
  const leave = (name: string, note: object): void => writeFileSync(join(dataDir, "run", name), JSON.stringify(note));
  leave(`${pid}.json`, { pid, identity });
  leave(`${process.pid}.json`, { pid: process.pid, identity: `${identityOf(process.pid)}0` });
  leave("7.json", { pid: "7" });
  assert.deepEqual(runningNotes(dataDir), []);
  assert.deepEqual(readdirSync(join(dataDir, "run")), []);
});

const rootSkip = process.getuid?.() === 0 ? false : "only root may act for others: run the tests as root";

test("a word that root leaves is the server's to read, and goes where no link leads", { skip: rootSkip }, () => {
  const remove = leaveNote(dataDir, { url: "http://x", startedAt: "now" });
  const [run, other] = [join(dataDir, "run"), join(dataDir, "other")];
  const wish = join(run, `${process.pid}.wish`);
  chownSync(run, 1234, 1235);
  writeFileSync(other, "kept");
  symlinkSync(other, wish);
  leaveWish(dataDir, process.pid, "word");
  const { uid, gid, mode } = statSync(wish);
  assert.deepEqual([uid, gid, mode & 0o777], [1234, 1235, 0o600]);
  assert.deepEqual([readFileSync(other, "utf8"), statSync(other).uid], ["kept", 0]);
  assert.equal(takeWish(dataDir), "word");
  remove();
});
