import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Downstream } from "../../../http/downstream.ts";
import { openBlobStore } from "../../../node/blobs/blob-store.ts";
import { StepFiles } from "./step-files.ts";

const NOW = 1;
const MB = 2 ** 20;

function openStepFiles(t: TestContext): StepFiles {
  const dir = mkdtempSync(join(tmpdir(), "berth-step-files-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return new StepFiles({ keyFor: () => Buffer.alloc(32), files: openBlobStore(dir) });
}

/** A request that tells a length; its body is empty, or never comes. */
const put = (bytes: number, body: "none" | "length" = "none"): Downstream =>
  ({
    ...{ method: "PUT", bodyFraming: body, header: () => String(bytes) },
    ...{ attach: () => {}, sendContinue: () => {}, readBody: () => {}, resumeBody: () => {} },
  }) as unknown as Downstream;

test("a caller who sends very many files forgets only files of its own", async (t) => {
  const files = openStepFiles(t);
  const send = async (owner: string, hash: string): Promise<void> => {
    files.admit(owner, NOW);
    assert.ok(await files.take(put(0), files.addressFor(owner, hash, NOW), NOW));
  };
  await send("quiet", "mine");
  for (let n = 0; n < 257; n += 1) await send("greedy", `file${n}`);
  const has = async (owner: string, hash: string): Promise<boolean> => (await files.pathOf(owner, hash)) !== null;
  assert.deepEqual([await has("greedy", "file0"), await has("greedy", "file256")], [false, true]);
  assert.ok(await has("quiet", "mine"));
});

test("what one caller sends within an hour is bounded, also what is on its way", async (t) => {
  const files = openStepFiles(t);
  const addressOf = (owner: string): string => {
    files.admit(owner, NOW);
    return files.addressFor(owner, "file", NOW);
  };
  for (let n = 0; n < 16; n += 1) void files.take(put(512 * MB, "length"), addressOf("greedy"), NOW);
  await assert.rejects(files.take(put(1), addressOf("greedy"), NOW), /Too many bytes/);
  assert.ok(await files.take(put(1), addressOf("quiet"), NOW));
});
