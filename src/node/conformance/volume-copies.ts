import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { need } from "../capabilities/need.ts";
import type { Driver } from "../driver.ts";
import { newUid, type Part } from "./harness.ts";

export const volumeCopies: Part = (get, spec) => {
  const madeVolume = async (t: TestContext, driver: Driver): Promise<string> => {
    const volumes = await need(driver, "volumes");
    const id = newUid();
    t.after(() => volumes.destroy(id));
    await volumes.create({ id, sizeMb: 16 });
    return id;
  };

  test("a copy of a mounted volume has what was written before it, and nothing later", async (t) => {
    const { driver, read, write } = get();
    const [volumes, copies] = [await need(driver, "volumes"), await need(driver, "volumeCopies")];
    const [restored, cloned] = [newUid(), newUid()];
    const source = await madeVolume(t, driver);
    t.after(() => Promise.all([restored, cloned].map((id) => volumes.destroy(id))));
    const first = await driver.create(spec({ mounts: [{ source: { volume: source }, path: "/data" }] }));
    t.after(() => driver.destroy(first.uid));
    await write(first, "/data/kept.txt", "before");
    const copy = newUid();
    t.after(() => copies.remove(copy));
    const taken = await copies.take(source, copy);
    await write(first, "/data/kept.txt", "after");
    assert.equal((await copies.take(source, copy)).createdAt, taken.createdAt, "the same id again changes nothing");
    assert.ok((await copies.list()).some(({ id, sizeMb }) => id === copy && sizeMb === 16));
    assert.equal((await copies.restore(restored, { copy })).sizeMb, 16);
    await copies.restore(cloned, { volume: source });
    const mounts = [
      { source: { volume: restored }, path: "/restored" },
      { source: { volume: cloned }, path: "/cloned" },
    ];
    const second = await driver.create(spec({ mounts }));
    t.after(() => driver.destroy(second.uid));
    assert.equal(await read(second, "/restored/kept.txt"), "before");
    assert.equal(await read(second, "/cloned/kept.txt"), "after");
    await write(second, "/restored/kept.txt", "mine");
    assert.equal(await read(first, "/data/kept.txt"), "after", "a copy shares nothing with the volume");
    const tar = (await buffer(await copies.pack(copy))).toString("latin1");
    assert.match(tar, /kept\.txt[\s\S]*before/);
    assert.doesNotMatch(tar, /lost\+found/);
    await driver.destroy(second.uid);
    await driver.destroy(first.uid);
  });

  test("a volume is filled once, and a source that is not there is refused", async (t) => {
    const { driver } = get();
    const [volumes, copies] = [await need(driver, "volumes"), await need(driver, "volumeCopies")];
    const from = mkdtempSync(join(tmpdir(), "fill-"));
    t.after(() => rmSync(from, { recursive: true }));
    writeFileSync(join(from, "sent.txt"), "sent");
    const id = newUid();
    t.after(() => volumes.destroy(id));
    await copies.fill({ id, sizeMb: 16, from });
    await assert.rejects(copies.fill({ id, sizeMb: 16, from }), { code: "conflict" });
    const nowhere = newUid();
    await assert.rejects(copies.restore(nowhere, { copy: "none" }), { code: "unprocessable" });
    await assert.rejects(copies.take(nowhere, newUid()), { code: "unprocessable" });
    assert.equal(await volumes.observe(nowhere), null);
  });
};
