import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { need } from "../capabilities/need.ts";
import { newUid, type Part } from "./harness.ts";

export const drives: Part = (get, spec) => {
  test("a drive starts with the files of a folder, once", async () => {
    const { driver, read, write } = get();
    const drives = await need(driver, "drives");
    const id = newUid();
    const from = mkdtempSync(join(tmpdir(), "seed-"));
    writeFileSync(join(from, "seed.txt"), "planted");
    await drives.create(id, { from });
    writeFileSync(join(from, "seed.txt"), "too late");
    await drives.create(id, { from });
    rmSync(from, { recursive: true });
    const mounts = [{ source: { drive: id }, path: "/code" }];
    const one = await driver.create(spec({ mounts }));
    assert.equal(await read(one, "/code/seed.txt"), "planted");
    await write(one, "/code/more.txt", "grown");
    const two = await driver.create(spec({ mounts }));
    assert.equal(await read(two, "/code/more.txt"), "grown");
    for (const each of [one, two]) await driver.destroy(each.uid);
    await drives.destroy(id);
  });
};
