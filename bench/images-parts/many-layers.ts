/** A machine with 1,000 layers on its disk, against one with none: the start of the driver, and the removal of an image. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type LocalDriver, openLocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import { ociArchive, tar } from "../../test/image-archive.ts";
import { percentiles, table } from "../measure.ts";
import { timed } from "./layers.ts";

const IMAGES = 10;
const LAYERS_EACH = 100;
const ROUNDS = 5;

export async function manyLayers(dir: string, sandboxd: string): Promise<void> {
  const dataDir = join(dir, "many");
  const open = (): Promise<LocalDriver> => openLocalDriver({ dataDir, brand: "berth", sandboxd });
  const rows = [await measured("0", dir, open)];
  const driver = await open();
  for (let image = 0; image < IMAGES; image++) {
    const layers = Array.from({ length: LAYERS_EACH }, (_, at) =>
      tar([{ path: `files/${image}/${at}`, content: `${image} ${at}` }]),
    );
    const file = join(dir, "many.image");
    writeFileSync(file, ociArchive(layers));
    await driver.capabilities.images.load(file, `bench/many-${image}:1`);
  }
  await driver.stop("kill");
  rows.push(await measured(String(IMAGES * LAYERS_EACH), dir, open));
  table(`layers on the disk, medians of ${ROUNDS}`, rows);
}

/** A start sweeps what no image names, and so does the removal of an image. */
async function measured(
  layers: string,
  dir: string,
  open: () => Promise<LocalDriver>,
): Promise<Record<string, string | number>> {
  const [starts, removals]: [number[], number[]] = [[], []];
  const file = join(dir, "one.image");
  writeFileSync(file, ociArchive([tar([{ path: "one", content: "one" }])]));
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    const driver = await open();
    starts.push(performance.now() - began);
    const { images } = driver.capabilities;
    await images.load(file, "bench/one:1");
    removals.push(await timed(() => images.remove("bench/one:1")));
    await driver.stop("kill");
  }
  const [startMs, removeMs] = [percentiles(starts).p50Ms, percentiles(removals).p50Ms];
  return { layers, "start of the driver ms": startMs, "removal of an image ms": removeMs };
}
