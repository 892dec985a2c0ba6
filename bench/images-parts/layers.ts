/** Layers to measure with. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FILES_PER_MB = 60; // as in a Debian layer

/** A tar of files of which half compresses, below `usr/share/{name}`. */
export function makeLayer(dir: string, mb: number, name = "bench"): Buffer {
  const tree = join(dir, "tree");
  const halfBytes = Math.floor((1024 * 1024) / FILES_PER_MB / 2);
  for (let folder = 0; folder < mb; folder++) {
    const place = join(tree, `usr/share/${name}/${folder}`);
    mkdirSync(place, { recursive: true });
    for (let file = 0; file < FILES_PER_MB; file++) {
      // Other bytes in each file: an image that compresses too well is refused.
      const content = Buffer.concat([randomBytes(halfBytes), Buffer.alloc(halfBytes, "text ")]);
      writeFileSync(join(place, String(file)), content);
    }
  }
  const layer = execFileSync("tar", ["-cf", "-", "-C", tree, "."], { maxBuffer: 4 * 1024 ** 3 });
  rmSync(tree, { recursive: true });
  return layer;
}

export async function timed(work: () => unknown): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}
