import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Spawner } from "../calls/spawner.ts";
import type { Arch } from "../calls/stepper.ts";
import { HostNames } from "./host-names.ts";

const skip = process.platform === "linux" && process.getuid?.() === 0 ? false : "needs root on Linux";

test("names wanted at once are given together, and one that has ended fails alone", { skip }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "host-names-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const spawner = new Spawner(dir, process.arch as Arch);
  await spawner.open();
  t.after(() => spawner.stop());
  const start = async (): Promise<number> => {
    const child = spawn("unshare", ["--uts", "sh", "-c", "echo ready; exec sleep 1000"]);
    t.after(() => child.kill("SIGKILL"));
    await once(child.stdout, "data");
    return child.pid ?? 0;
  };
  const [one, two, three] = [await start(), await start(), await start()];
  const gone = spawn("true");
  await once(gone, "close");
  let runs = 0;
  const names = new HostNames({
    run: (what, fill) => {
      runs += 1;
      return spawner.run(what, fill);
    },
  });
  const nameOf = (pid: number): string =>
    execFileSync("nsenter", ["-t", String(pid), "-u", "hostname"], { encoding: "utf8" }).trim();
  await Promise.all([one, two, three].map((pid, index) => names.set({ pid, name: `box-${index}` })));
  assert.deepEqual([one, two, three].map(nameOf), ["box-0", "box-1", "box-2"]);
  assert.equal(runs, 1, "all of them together");
  const outcomes = await Promise.allSettled([
    names.set({ pid: one, name: "first" }),
    names.set({ pid: gone.pid ?? 0, name: "nobody" }),
    names.set({ pid: two, name: "second" }),
  ]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  assert.deepEqual([one, two].map(nameOf), ["first", "second"]);
  assert.equal(hostname(), nameOf(process.pid), "ours is as it was");
});
