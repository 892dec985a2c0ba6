/** Backups that servers make by themselves: by the schedule, and each server its own files. */
import assert from "node:assert/strict";
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import pino from "pino";
import { backUpWhenDue } from "../../src/composition/backups.ts";
import { loadConfig } from "../../src/config.ts";
import { DAY_MS } from "../../src/lib/time/clock.ts";
import { backupEverything, type Teller } from "../../src/operator/backup/everything.ts";
import { restoreEverything } from "../../src/operator/backup/restore-everything.ts";
import { testDatabases } from "../databases.ts";
import { startTestPlatform } from "../platform.ts";

const quiet: Teller = { progress: () => {}, note: () => {} };
const databases = await testDatabases();
const folder = mkdtempSync(join(tmpdir(), "berth-scheduled-"));
after(async () => {
  await databases.stop();
  rmSync(folder, { recursive: true, force: true });
});
const backupsIn = (target: string): number => globSync(join(target, "*/backups/*")).length;

test("a scheduled backup is made once for each slot, keeps as many as it should, and a failure is an event", async () => {
  await using platform = await startTestPlatform();
  const { store } = platform.app;
  const target = join(folder, "target");
  let now = Date.parse("2027-01-01T00:00:00Z");
  const clock = { now: () => now };
  const due = (backup_target: string) => {
    const config = loadConfig({
      flags: { data: platform.dataDir, "backup-target": backup_target, "backup-keep": "2" },
      env: {},
    });
    const log = pino({ level: "silent" });
    return backUpWhenDue("0 3 * * *", { config, store, clock, log, nodeId: "n" }, new AbortController().signal);
  };
  await due(target);
  now += 1000;
  await due(target);
  assert.equal(backupsIn(target), 0, "nothing is due at the start");
  for (const expected of [1, 2, 2]) {
    now += DAY_MS;
    await Promise.all([due(target), due(target)]);
    assert.equal(backupsIn(target), expected);
  }
  now += DAY_MS;
  const file = join(folder, "a-file");
  writeFileSync(file, "");
  await due(file);
  const lines = await store.audit.list({ action: "backup", limit: 10 });
  assert.deepEqual(
    lines.map(({ outcome }) => outcome),
    ["failed", "ok", "ok", "ok"],
  );
  assert.match(lines[0]?.target ?? "", /a-file: .*ENOTDIR/);
  assert.throws(
    () => loadConfig({ flags: { data: folder, "backup-schedule": "0 3 * * *" }, env: {} }),
    /needs BERTH_BACKUP_TARGET/,
  );
  assert.throws(
    () => loadConfig({ flags: { data: folder, "backup-schedule": "often", "backup-target": "x" }, env: {} }),
    /five cron fields/,
  );
});

const postgres = databases.all.find(({ name }) => name === "postgres");
describe("several servers", { skip: postgres?.skip ?? "no PostgreSQL" }, () => {
  test("each stores the files of its node, and each machine gets its own back", async () => {
    const place = (await postgres?.fresh()) ?? assert.fail();
    const target = join(folder, "of-two");
    const config = { secret_key: "k".repeat(32), backup_target: target };
    const dirs = { left: join(folder, "left"), right: join(folder, "right") };
    const start = (name: "left" | "right") =>
      startTestPlatform({
        databaseUrl: place.databaseUrl ?? null,
        dataDir: dirs[name],
        config: { ...config, node_name: name },
      });
    const left = await start("left");
    const right = await start("right");
    for (const [name, dir] of Object.entries(dirs)) {
      mkdirSync(join(dir, "runtime/drives", `of-${name}`), { recursive: true });
      writeFileSync(join(dir, "runtime/drives", `of-${name}`, "file"), name);
    }
    const configOf = (data: string, url = place.databaseUrl ?? "") =>
      loadConfig({
        flags: { data, "database-url": url, "secret-key": config.secret_key, "backup-target": target },
        env: {},
      });
    const command = { target: undefined, keep: undefined, tell: quiet };
    const [line = ""] = await backupEverything({ ...command, config: configOf(dirs.left), skipLost: false });
    assert.match(line, /folders of 2 nodes/);
    await right.stop();
    await left.stop();
    const other = (await postgres?.fresh()) ?? assert.fail();
    const chosen = { target: undefined, id: undefined, force: false, tell: quiet };
    const to = (name: string) => configOf(join(folder, `new-${name}`), other.databaseUrl ?? "");
    const both = restoreEverything({ ...chosen, config: to("left"), node: undefined, filesOnly: false });
    await assert.rejects(both, /files of several nodes/);
    await restoreEverything({ ...chosen, config: to("left"), node: "left", filesOnly: false });
    await restoreEverything({ ...chosen, config: to("right"), node: "right", filesOnly: true });
    for (const name of ["left", "right"] as const) {
      const drives = join(folder, `new-${name}`, "runtime/drives");
      assert.deepEqual(readdirSync(drives), [`of-${name}`]);
      const identity = JSON.parse(readFileSync(join(folder, `new-${name}`, "node.json"), "utf8"));
      assert.deepEqual(identity, JSON.parse(readFileSync(join(dirs[name], "node.json"), "utf8")));
    }
    other.remove();
    place.remove();
  });
});
