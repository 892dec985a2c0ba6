import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { writeAnswer } from "./answer-text.ts";

async function written(chunks: readonly string[], endLine: boolean): Promise<string> {
  const out = new PassThrough();
  const bytes = chunks.map((chunk) => Buffer.from(chunk));
  await writeAnswer(bytes, out, endLine);
  return String(out.read() ?? "");
}

test("an answer ends its line at a terminal, and stays as it is for a program", async () => {
  assert.equal(await written(["one ", "two"], true), "one two\n");
  assert.equal(await written(["one\n", ""], true), "one\n");
  assert.equal(await written([], true), "");
  assert.equal(await written(["one"], false), "one");
});
