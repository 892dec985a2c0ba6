/** The conformance suite as a user without rights; run by test/local/driver.test.ts, which has them. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { driverConformance } from "../../src/node/conformance.ts";
import { Canary } from "../canary.ts";
import { dockerSave, tar } from "../image-archive.ts";
import { LocalMachine, localHarness } from "./machine.ts";

driverConformance("local (user)", () => localHarness({ grade: "user" }));

test("an image is unpacked in a cage without root, too", async (t) => {
  const machine = new LocalMachine();
  const driver = await machine.open({ grade: "user" });
  t.after(async () => {
    await driver.removeImage("team/app:1"); // folders in it are closed even to their owner
    await driver.stop("kill");
    machine.dispose();
  });
  using canary = new Canary();
  const layer = tar([
    { path: "a/b/", type: "5", mode: 0o555 },
    { path: "a/b/.wh.precious" },
    { path: "a/b/kept", content: "kept" },
    { path: "c/", type: "5", mode: 0o755 },
    { path: "c/.wh.precious" },
    { path: "c", type: "2", link: canary.dir },
    { path: "d/.wh.gone" },
  ]);
  const file = join(machine.dataDir, "image.tar");
  writeFileSync(file, dockerSave([layer]));
  assert.equal((await driver.loadImage(file, "team/app:1")).sizeBytes, 4);
  canary.assertUntouched();
});
