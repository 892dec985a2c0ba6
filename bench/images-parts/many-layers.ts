/** A machine with 1,000 layers on its disk, against one with none: the start of the driver, and the sweep of images. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openImageStore, sweepImages } from "../../src/node/drivers/local/images/images.ts";
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
  const rows = [await measured("0", dataDir, open)];
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
  rows.push(await measured(String(IMAGES * LAYERS_EACH), dataDir, open));
  table(`layers on the disk, medians of ${ROUNDS}`, rows);
}

async function measured(
  layers: string,
  dataDir: string,
  open: () => Promise<LocalDriver>,
): Promise<Record<string, string | number>> {
  const [starts, sweeps]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    const driver = await open();
    starts.push(performance.now() - began);
    const store = openImageStore({ dir: join(dataDir, "images"), brand: "berth", resolvConf: "" });
    sweeps.push(await timed(() => sweepImages(store, new Set())));
    await driver.stop("kill");
  }
  return { layers, "start of the driver ms": percentiles(starts).p50Ms, "sweep ms": percentiles(sweeps).p50Ms };
}
