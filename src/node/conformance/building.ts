import assert from "node:assert/strict";
import { test } from "node:test";
import { need } from "../capabilities/need.ts";
import { newUid, type Part } from "./harness.ts";

export const building: Part = (get, spec) => {
  test("what a workload wrote and removed is a layer of a new image, and nothing of the platform is in it", async () => {
    const { driver, image } = get();
    const [building, images] = [await need(driver, "building"), await need(driver, "images")];
    const run = async (from: string, line: string): Promise<{ uid: string; said: string }> => {
      const wanted = spec({ image: from, exec: { argv: ["sh", "-c", line] } });
      await driver.create(wanted);
      const ended = await driver.waitExit(wanted.uid);
      const said = await driver.readOutput(wanted.uid, "stdout", 0, 10_000);
      assert.equal(ended?.exitCode, 0, said.bytes.toString());
      return { uid: wanted.uid, said: said.bytes.toString() };
    };
    const [first, second] = [`built/${newUid()}`, `built/${newUid()}`];
    const one = await run(image, "mkdir /made && echo one > /made/a && echo two > /usr/local/b && rm /etc/passwd");
    const document = { Env: ["WORD=kept", "PATH=/usr/bin:/bin"], WorkingDir: "/made", Cmd: ["cat", "a"] };
    const made = await building.commit(one.uid, first, document, []);
    assert.deepEqual([made.workDir, made.argv, made.env.WORD], ["/made", ["cat", "a"], "kept"]);
    const two = await run(first, "rm -r /made && mkdir /made && echo three > /made/c && mkdir -p /mnt/empty");
    await building.commit(two.uid, second, document, ["/mnt/empty"]);
    await driver.destroy(one.uid);
    await driver.destroy(two.uid);
    const look =
      "ls -d /made/* /usr/local/b /etc/passwd /mnt/empty 2>/dev/null; echo $WORD; find / -xdev -newer /made/c 2>/dev/null";
    const { said } = await run(second, look);
    assert.deepEqual(said.trim().split("\n").slice(0, 3), ["/made/c", "/usr/local/b", "kept"]);
    assert.match((await run(first, "cat /made/a")).said, /one/);
    const derived = await building.derive(`built/${newUid()}`, second, { ...document, Cmd: ["other"] });
    assert.deepEqual(derived.argv, ["other"]);
    assert.notEqual(derived.digest, (await images.find(second))?.digest);
    for (const name of [first, second, derived.name]) assert.ok(await images.remove(name));
  });

  test("a workload that runs is not committed", async () => {
    const { driver } = get();
    const wanted = spec({ exec: { argv: ["sleep", "600"] } });
    await driver.create(wanted);
    await assert.rejects((await need(driver, "building")).commit(wanted.uid, "built/no", {}, []), { code: "conflict" });
  });
};
