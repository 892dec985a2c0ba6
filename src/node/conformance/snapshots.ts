import assert from "node:assert/strict";
import { test } from "node:test";
import { need } from "../capabilities/need.ts";
import { newUid, type Part } from "./harness.ts";

export const snapshots: Part = (get, spec) => {
  test("a snapshot starts new workloads with its files, and is not changed by them", async () => {
    const { driver, read, write } = get();
    const snapshots = await need(driver, "snapshots");
    const origin = await driver.create(spec());
    await write(origin, "/kept.txt", "before");
    const id = newUid();
    assert.equal((await snapshots.take(origin.uid, id)).id, id);
    await write(origin, "/kept.txt", "after");
    const copy = await driver.create(spec({ snapshot: id }));
    assert.equal(await read(copy, "/kept.txt"), "before");
    await write(copy, "/kept.txt", "changed");
    const again = await driver.create(spec({ snapshot: id }));
    assert.equal(await read(again, "/kept.txt"), "before");
    assert.equal(await read(origin, "/kept.txt"), "after");
    for (const each of [copy, again]) await driver.destroy(each.uid);
    await snapshots.remove(id);
    assert.ok(!(await snapshots.list()).some((each) => each.id === id));
    await assert.rejects(driver.create(spec({ snapshot: id })), { code: "bad_request" });
  });
};
