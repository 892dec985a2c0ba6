/** `berth storage` on the data folder of a server that runs. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../src/config.ts";
import { measureStorage, storageLines } from "../../src/operator/storage.ts";
import { startTestPlatform } from "../platform.ts";

test("storage shows whose files take space and which no record names, and removes nothing", async () => {
  await using platform = await startTestPlatform();
  const made = await platform.call("POST", "/volumes", { body: { metadata: { name: "disk" }, spec: {} } });
  const { uid, workspace } = made.body.metadata;
  const { dataDir } = platform;
  const put = (family: string, id: string): string => {
    const folder = join(dataDir, "runtime", family, id);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "file"), Buffer.alloc(1024 * 1024, 1));
    return folder;
  };
  put("volumes", uid);
  put("volumes", ".half-made");
  put("snapshots", "snap_that_a_fork_stands_on");
  const orphan = put("drives", "of nobody\nat all");
  const config = loadConfig({ flags: { data: dataDir }, env: {} });
  const report = await measureStorage(config);
  assert.deepEqual(
    report.uses
      .filter(({ kind }) => ["volume", "snapshot", "drive"].includes(kind))
      .map(({ kind, workspace, count, bytes }) => [kind, workspace, count, bytes >= 1024 * 1024])
      .sort(),
    [
      ["snapshot", "-", 1, true],
      ["volume", "-", 1, true],
      ["volume", workspace, 1, true],
    ],
  );
  assert.deepEqual(
    report.orphans.map(({ path }) => path),
    [orphan],
  );
  const lines = storageLines(report, config).join("\n");
  assert.match(lines, new RegExp(`^volume +${workspace} +1 +1\\.\\d MB$`, "m"));
  assert.match(lines, /No record names these/);
  assert.doesNotMatch(lines, /nobody\nat all/, "a name is shown on one line");
  assert.deepEqual(readdirSync(join(dataDir, "runtime", "drives")), ["of nobody\nat all"]);

  const drive = await platform.call("POST", "/drives", { body: { metadata: { name: "shared" }, spec: {} } });
  await platform.app.store.resources.update(workspace, drive.body.metadata.uid, ({ state }) => ({
    state: { ...state, usedBytes: 3 * 1024 * 1024, usedObjects: 2 },
  }));
  const limited = loadConfig({ flags: { data: dataDir, quotas: "drive_mb=8,drive_objects=100" }, env: {} });
  assert.match(
    storageLines(await measureStorage(limited), limited).join("\n"),
    new RegExp(`^Drives of ${workspace} hold 3(\\.0)? MB of 8(\\.0)? MB in 2 of 100 objects\\.$`, "m"),
  );
});
