/** Which files of a control group are read and written. A plain folder stands in for a group: no kernel is asked. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Cgroup, heldBytes, reclaimDownTo, setCgroupLimits } from "./cgroup.ts";

const STAT = "anon 700\nfile 400\ninactive_file 100\nactive_file 200\ntotal_inactive_file 110\ntotal_active_file 220\n";

test("pages of files are not held memory, in both versions", (t) => {
  const dir = folder(t, { "memory.stat": STAT, "memory.current": "1000\n", "memory.usage_in_bytes": "1000\n" });
  assert.equal(heldBytes({ version: 2, paths: { unified: dir } }), 700);
  assert.equal(heldBytes({ version: 1, paths: { memory: dir } }), 670);
});

test("version 2: what cannot be reclaimed is told before a limit would kill, and no throttle stays", (t) => {
  const dir = folder(t, { "memory.current": "1000\n", "cpu.max": "" });
  const group: Cgroup = { version: 2, paths: { unified: dir } };
  assert.equal(reclaimDownTo(group, 500), 1000);
  assert.equal(readFileSync(join(dir, "memory.high"), "utf8"), "max");
  setCgroupLimits(group, { memoryMb: 2, cpus: 0.5 });
  const written = ["memory.max", "memory.swap.max", "cpu.max", "cpu.max.burst"].map((name) =>
    readFileSync(join(dir, name), "utf8"),
  );
  assert.deepEqual(written, ["2097152", "0", "50000 100000", "50000"]);
});

function folder(t: { after(work: () => void): void }, files: Record<string, string>): string {
  const dir = mkdtempSync(join(tmpdir(), "berth-cgroup-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return dir;
}
