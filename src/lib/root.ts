import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** The project's folder, the nearest with a package.json: this code may run from its file or from a bundle. */
export const ROOT = above(import.meta.dirname);

function above(folder: string): string {
  return existsSync(join(folder, "package.json")) ? folder : above(dirname(folder));
}
