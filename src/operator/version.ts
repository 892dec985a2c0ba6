import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../lib/root.ts";

/** Version of this program, or of the one in another folder. */
export const packageVersion = (root = ROOT): string =>
  (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version;
