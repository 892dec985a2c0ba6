import assert from "node:assert/strict";
import { test } from "node:test";
import { need } from "../capabilities/need.ts";
import { newUid, type Part } from "./harness.ts";

/** A driver that mounts into running workloads has drives to mount. */
export const hotMounts: Part = (get, spec) => {
  test("a drive is shared, mounted and unmounted while running", async () => {
    const { driver, read, write } = get();
    const drives = await need(driver, "drives");
    const hotMounts = await need(driver, "hotMounts");
    const id = newUid();
    await drives.create(id);
    const [one, two] = [await driver.create(spec()), await driver.create(spec())];
    const mount = { source: { drive: id }, path: "/mnt/shared/deep" };
    for (const { uid: each } of [one, two, one]) await hotMounts.mount(each, mount);
    assert.equal(await drives.bytes(newUid()), null);
    const empty = (await drives.bytes(id)) ?? 0;
    await write(one, "/mnt/shared/deep/note", "hello".repeat(100_000));
    assert.ok(((await drives.bytes(id)) ?? 0) >= empty + 500_000, "what it holds can be told");
    await write(one, "/mnt/shared/deep/note", "hello");
    assert.equal(await read(two, "/mnt/shared/deep/note"), "hello");
    assert.deepEqual((await driver.observe(one.uid))?.mounts, [mount]);
    const other = newUid();
    await drives.create(other);
    await assert.rejects(hotMounts.mount(one.uid, { source: { drive: other }, path: mount.path }), {
      code: "conflict",
    });
    assert.equal(await hotMounts.unmount(one.uid, mount.path), true);
    assert.equal(await hotMounts.unmount(one.uid, mount.path), false);
    await assert.rejects(read(one, "/mnt/shared/deep/note"));
    assert.equal(await read(two, "/mnt/shared/deep/note"), "hello");
    await driver.destroy(two.uid);
    await drives.destroy(id);
    await drives.destroy(other);
  });
};
