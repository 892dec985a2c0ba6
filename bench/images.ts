/**
 * What images cost: loading one from a file, pulling one, sandboxes and builds on one, and a disk with many layers. Each
 * with a reference of the same run. Needs Linux, and tar; pulls need Debian's archive for skopeo, umoci and a registry.
 *
 *   npm run bench -- images [--mb=200] [--rounds=5] [--only=load|pull|creates|layers]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLocalDriver } from "../src/node/drivers/local/local-driver.ts";
import { cachedSandboxd } from "../src/node/sandboxd-build.ts";
import { createsAndBuilds } from "./images-parts/creates.ts";
import { loadAgainstTar } from "./images-parts/load.ts";
import { manyLayers } from "./images-parts/many-layers.ts";
import { pullAgainstSkopeo } from "./images-parts/pull.ts";

export async function run(flags: string[]): Promise<void> {
  const flag = (name: string): string | undefined => flags.find((each) => each.startsWith(`--${name}=`))?.split("=")[1];
  const [mb, rounds, only] = [Number(flag("mb") ?? 200), Number(flag("rounds") ?? 5), flag("only")];
  const wants = (part: string): boolean => only === undefined || only === part;
  const dir = mkdtempSync(join(tmpdir(), "bench-images-"));
  const sandboxd = await cachedSandboxd(join(dir, "bin"));
  const driver = await openLocalDriver({ dataDir: join(dir, "data"), brand: "berth", sandboxd });
  try {
    if (wants("load")) await loadAgainstTar(driver, dir, mb, rounds);
    if (wants("pull")) await pullAgainstSkopeo(driver, dir, mb, rounds);
    if (wants("creates")) await createsAndBuilds(dir, mb);
    if (wants("layers")) await manyLayers(dir, sandboxd);
  } finally {
    await driver.stop("kill");
    rmSync(dir, { recursive: true, force: true });
  }
}
