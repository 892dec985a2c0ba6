/** Counts what a folder holds. `find` walks by descriptors and follows no link, whatever workloads do meanwhile. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";

export interface Use {
  bytes: number;
  /** Files, links and empty folders. */
  objects: number;
}

const BLOCK_BYTES = 512;

/**
 * A file counts with its length, and a file with holes with the space that it takes. A folder that is not there holds
 * nothing; what vanishes or cannot be read meanwhile does not count.
 */
export async function folderUse(folder: string, signal?: AbortSignal): Promise<Use> {
  const use: Use = { bytes: 0, objects: 0 };
  if (!existsSync(folder)) return use;
  const wanted = ["(", "!", "-type", "d", "-o", "-empty", ")"];
  const args = [folder, "-xdev", "-mindepth", "1", ...wanted, "-printf", "%y %s %b\n"];
  const child = spawn("find", args, { stdio: ["ignore", "pipe", "ignore"], signal });
  const failed = new Promise<never>((_, reject) => child.once("error", reject));
  const counted = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      const [type, size = "0", blocks = "0"] = line.split(" ");
      use.objects += 1;
      if (type === "f") use.bytes += Math.min(Number(size), Number(blocks) * BLOCK_BYTES);
    }
    return use;
  })();
  return Promise.race([counted, failed]);
}
