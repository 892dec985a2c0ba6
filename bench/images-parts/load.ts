/** Loading an image of one layer, against GNU tar that unpacks the same layer into a folder. */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { LocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import { ociArchive } from "../../test/image-archive.ts";
import { percentiles, table } from "../measure.ts";
import { makeLayer, timed } from "./layers.ts";

export async function loadAgainstTar(driver: LocalDriver, dir: string, mb: number, rounds: number): Promise<void> {
  const plain = makeLayer(dir, mb);
  const rows: Record<string, string | number>[] = [];
  for (const [name, layer] of Object.entries({ plain, gzip: gzipSync(plain, { level: 1 }) })) {
    const [image, archive] = [join(dir, `${name}.image`), join(dir, `${name}.tar`)];
    writeFileSync(image, ociArchive([layer]));
    writeFileSync(archive, layer);
    const times: { load: number[]; tar: number[] } = { load: [], tar: [] };
    for (let round = 0; round < rounds; round++) {
      times.load.push(await timed(() => driver.capabilities.images.load(image, "bench/image:1")));
      await driver.capabilities.images.remove("bench/image:1");
      const out = join(dir, "out");
      mkdirSync(out);
      times.tar.push(await timed(() => execFileSync("tar", ["-xf", archive, "-C", out])));
      rmSync(out, { recursive: true });
    }
    for (const file of [image, archive]) rmSync(file);
    const [loadMs, tarMs] = [percentiles(times.load).p50Ms, percentiles(times.tar).p50Ms];
    rows.push({ layer: name, "load ms": loadMs, "tar -x ms": tarMs, ratio: loadMs / tarMs });
  }
  table(`an image with one layer of ${mb} MB, medians`, rows);
}
