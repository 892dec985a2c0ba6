/** Account files in the layers of an image. The layers are untrusted: no link in them is followed. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Largest account file; a real one has a few kilobytes. */
const FILE_BYTES_MAX = 1024 * 1024;

/** The file from the topmost layer that has it; empty when no layer has it, or a layer removed it. */
export function accountFile(layers: readonly string[], file: string): string {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
  for (const layer of layers) {
    const opened: number[] = [];
    try {
      opened.push(openSync(join(layer, "etc"), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      opened.push(openSync(`/proc/self/fd/${opened[0]}/${file}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
      const stats = fstatSync(opened[1] ?? -1);
      return stats.isFile() && stats.size <= FILE_BYTES_MAX ? readFileSync(opened[1] ?? -1, "utf8") : "";
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") return ""; // a link, or a whiteout
    } finally {
      for (const fd of opened) closeSync(fd);
    }
  }
  return "";
}
