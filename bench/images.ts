/**
 * What it costs to load an image: one layer of many files through the local driver, with GNU tar unpacking the same
 * layer into a folder as the reference of the same run. Needs Linux, and tar.
 *
 *   npm run bench -- images [--mb=200] [--rounds=5]
 */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { openLocalDriver } from "../src/node/drivers/local/local-driver.ts";
import { cachedSandboxd } from "../src/node/sandboxd-build.ts";
import { ociArchive } from "../test/image-archive.ts";
import { percentiles, table } from "./measure.ts";

const FILES_PER_MB = 60; // as in a Debian layer

export async function run(flags: string[]): Promise<void> {
  const flag = (name: string, otherwise: number): number =>
    Number(flags.find((each) => each.startsWith(`--${name}=`))?.split("=")[1] ?? otherwise);
  const [mb, rounds] = [flag("mb", 200), flag("rounds", 5)];
  const dir = mkdtempSync(join(tmpdir(), "bench-images-"));
  const dataDir = join(dir, "data");
  const driver = await openLocalDriver({ dataDir, brand: "berth", sandboxd: await cachedSandboxd(join(dir, "bin")) });
  try {
    const layers = { plain: makeLayer(dir, mb), gzip: Buffer.alloc(0) };
    layers.gzip = gzipSync(layers.plain, { level: 1 });
    const rows: Record<string, string | number>[] = [];
    for (const [name, layer] of Object.entries(layers)) {
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
      const [loadMs, tarMs] = [percentiles(times.load).p50Ms, percentiles(times.tar).p50Ms];
      rows.push({ layer: name, "load ms": loadMs, "tar -x ms": tarMs, ratio: loadMs / tarMs });
    }
    table(`an image with one layer of ${mb} MB, medians`, rows);
  } finally {
    await driver.stop("kill");
    rmSync(dir, { recursive: true, force: true });
  }
}

async function timed(work: () => unknown): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

/** Half of each file compresses. */
function makeLayer(dir: string, mb: number): Buffer {
  const tree = join(dir, "tree");
  const halfBytes = Math.floor((1024 * 1024) / FILES_PER_MB / 2);
  for (let folder = 0; folder < mb; folder++) {
    mkdirSync(join(tree, `usr/share/${folder}`), { recursive: true });
    for (let file = 0; file < FILES_PER_MB; file++) {
      // Other bytes in each file: an image that compresses too well is refused.
      const content = Buffer.concat([randomBytes(halfBytes), Buffer.alloc(halfBytes, "text ")]);
      writeFileSync(join(tree, `usr/share/${folder}/${file}`), content);
    }
  }
  const layer = execFileSync("tar", ["-cf", "-", "-C", tree, "."], { maxBuffer: 4 * 1024 ** 3 });
  rmSync(tree, { recursive: true });
  return layer;
}
