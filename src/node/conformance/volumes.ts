import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { need } from "../capabilities/need.ts";
import { newUid, type Part } from "./harness.ts";

export const volumes: Part = (get, spec) => {
  test("a volume outlives its workload and serves one at a time", async () => {
    const { driver, read, write } = get();
    const volumes = await need(driver, "volumes");
    const from = mkdtempSync(join(tmpdir(), "seed-"));
    writeFileSync(join(from, "seed.txt"), "planted");
    const id = newUid();
    const volume = await volumes.create({ id, sizeMb: 16, from });
    rmSync(from, { recursive: true });
    assert.deepEqual({ ...(await volumes.create({ id, sizeMb: 16 })), usedBytes: 0 }, { ...volume, usedBytes: 0 });
    const mounts = [{ source: { volume: id }, path: "/data" }];
    const first = await driver.create(spec({ mounts }));
    assert.equal(await read(first, "/data/seed.txt"), "planted");
    await write(first, "/data/kept.txt", "still here");
    await assert.rejects(driver.create(spec({ mounts })), { code: "conflict" });
    await assert.rejects(volumes.destroy(id), { code: "conflict" });
    await driver.destroy(first.uid);
    const second = await driver.create(spec({ mounts }));
    assert.equal(await read(second, "/data/kept.txt"), "still here");
    await driver.destroy(second.uid);
    await volumes.destroy(id);
    assert.equal(await volumes.observe(id), null);
  });
};
