/** The output of all processes of a sandbox lands in one pair of files, in whole lines. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { eventually, skip, startSandboxd, type TestDaemon } from "../../../test/sandboxd-harness.ts";

const paths = (folder: string) => ({ stdout: join(folder, "all.out"), stderr: join(folder, "all.err") });
const start = () => startSandboxd({ config: (folder) => ({ processLogs: paths(folder) }) });

/** Holes read as zeros. */
const linesIn = (file: string): string[] =>
  existsSync(file) ? readFileSync(file, "utf8").replaceAll("\0", "").split("\n").slice(0, -1) : [];
const linesOf = ({ folder }: TestDaemon, stream: "stdout" | "stderr"): string[] => linesIn(paths(folder)[stream]);

test("processes that have ended, that run, and that are forgotten", { skip }, async () => {
  await using d = await start();
  await d.exec("echo out; echo err >&2; printf 'no end'");
  await eventually(async () => linesOf(d, "stdout").length === 2 && linesOf(d, "stderr").length === 1);
  assert.deepEqual([linesOf(d, "stdout"), linesOf(d, "stderr")], [["out", "no end"], ["err"]]);
  await d.ask("POST", "/process", { body: { command: "echo begun; printf half; read x < /dev/zero", name: "runs" } });
  await eventually(async () => linesOf(d, "stdout").includes("begun"));
  assert.ok(!linesOf(d, "stdout").includes("half"), "a line that may go on is waited for");
  await d.ask("DELETE", "/process/runs/kill");
  await eventually(async () => linesOf(d, "stdout").includes("half"));
});

test("lines of processes that write at once stay whole, and each is there once", { skip }, async () => {
  await using d = await start();
  const count = 2000;
  const all = ["a", "b", "c"].map((word) =>
    d.exec(`for n in $(seq ${count}); do echo ${word}-$n; done`, { timeout: 60 }),
  );
  await Promise.all(all);
  await eventually(async () => linesOf(d, "stdout").length >= 3 * count);
  const expected = ["a", "b", "c"].flatMap((word) => Array.from({ length: count }, (_, n) => `${word}-${n + 1}`));
  assert.deepEqual(linesOf(d, "stdout").toSorted(), expected.toSorted());
});

test("processes that keep coming do not put the copy off", { skip }, async () => {
  await using d = await start();
  await d.exec("echo first");
  for (let n = 0; !linesOf(d, "stdout").includes("first"); n += 1) {
    assert.ok(n < 400, "many came after it, and it is not there yet");
    await d.exec("true");
  }
});

test("a flood is cut short and says so", { skip }, async () => {
  await using d = await start();
  await d.exec("yes a-line-of-a-flood | head -c 60000000; echo; echo the end", { timeout: 60 });
  await eventually(async () => linesOf(d, "stdout").at(-1) === "the end");
  assert.ok(linesOf(d, "stdout").some((line) => /^\[\d+ bytes were left out here\]$/.test(line)));
  assert.ok(statSync(paths(d.folder).stdout).size < 60_000_000);
});
