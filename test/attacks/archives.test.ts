/**
 * Archives that attack the machine which unpacks them. Beside the target lies a canary: a tree that must stay
 * byte-identical whatever an archive holds.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { LocalDriver } from "../../src/runtime/drivers/local/local-driver.ts";
import { Canary } from "../canary.ts";
import { dockerSave, type Entry, tar } from "../image-archive.ts";
import { LocalMachine, localDriverMissing } from "../local-machine.ts";

describe("a hostile image", { skip: localDriverMissing ?? false }, () => {
  const machine = new LocalMachine();
  let driver: LocalDriver;
  before(async () => {
    driver = await machine.open();
  });
  after(async () => {
    await driver?.stop("kill");
    machine.dispose();
  });

  const load = async (layers: Entry[][]): Promise<string> => {
    const file = join(machine.dataDir, "attack.tar");
    writeFileSync(file, dockerSave(layers.map((layer) => tar(layer))));
    try {
      await driver.loadImage(file, "attack/image:1");
      return "taken";
    } catch (error) {
      return (error as Error).message;
    }
  };

  const attacks: Record<string, (victim: string) => Entry[][]> = {
    "a whiteout whose folder becomes a link to the host": (victim) => [
      [
        { path: "a/b/", type: "5", mode: 0o755 },
        { path: "a/b/.wh.precious" },
        { path: "a/b", type: "2", link: victim },
      ],
    ],
    "an opaque mark whose folder becomes a link to the host": (victim) => [
      [
        { path: "a/b/", type: "5", mode: 0o755 },
        { path: "a/b/.wh..wh..opq" },
        { path: "a/b", type: "2", link: victim },
      ],
    ],
    "a whiteout of the parent folder": () => [[{ path: "a/.wh..." }]],
    "a whiteout of the folder itself": () => [[{ path: "a/x", content: "" }, { path: "a/.wh.." }]],
  };
  for (const [what, layersFor] of Object.entries(attacks)) {
    test(`${what} changes nothing outside`, async () => {
      using canary = new Canary();
      await load(layersFor(canary.dir));
      canary.assertUntouched();
    });
  }
});
