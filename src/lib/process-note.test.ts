import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { identityOf, leaveNote, runningNotes } from "./process-note.ts";

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
