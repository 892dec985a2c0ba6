import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { Queries } from "./database.ts";
import { Batcher } from "./sqlite-batcher.ts";

/** A batcher and the number of writers in each of its commits. Its clock advances by `stepMs` at every reading. */
function counted(stepMs = 0): { write(): Promise<void>; commits: number[] } {
  const commits: number[] = [];
  let writers = 0;
  let nowMs = 0;
  const exec = (text: string): void => {
    if (text === "COMMIT") commits.push(writers);
    if (text === "BEGIN IMMEDIATE") writers = 0;
  };
  const batcher = new Batcher(
    {} as Queries,
    { exec } as DatabaseSync,
    { statements: 0 },
    { nowMs: () => (nowMs += stepMs) },
  );
  const work = async (): Promise<void> => {
    writers += 1;
  };
  return { commits, write: () => batcher.add({ once: false, work, shares: () => [], done: () => {} }) };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("writers that come one in a turn share a commit, and those after it the next", async () => {
  const { write, commits } = counted();
  const writing: Promise<void>[] = [];
  for (let n = 0; n < 5; n += 1) {
    writing.push(write(), write());
    await turn();
  }
  await Promise.all(writing);
  await write();
  assert.deepEqual(commits, [10, 1]);
});

test("one that comes alone, after others that did, waits for the end of its turn only", async () => {
  const { write, commits } = counted();
  for (let n = 0; n < 3; n += 1) await write();
  const alone = write();
  await turn();
  await turn();
  assert.equal(commits.length, 4);
  await alone;
});

test("those who never stop coming are not waited for without end", async () => {
  const { write, commits } = counted(1);
  const writing: Promise<void>[] = [];
  while (commits.length < 2) {
    writing.push(write(), write());
    await turn();
  }
  await Promise.all(writing);
  assert.ok(
    commits.slice(0, 2).every((writers) => writers > 1 && writers < 20),
    String(commits),
  );
});

test("everybody is told only after the commit that has them", async () => {
  const { write, commits } = counted();
  await Promise.all([1, 2, 3].map(() => write().then(() => assert.deepEqual(commits, [3]))));
});
