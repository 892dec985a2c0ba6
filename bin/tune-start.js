// What makes a start quick and small; see docs/decisions/operator-start-up.md for the measurements.
import module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import v8 from "node:v8";

/** In our own folder, because code is run from it. */
const CACHE = join(dirname(fileURLToPath(import.meta.url)), "../node_modules/.cache/berth");

export function tuneStart() {
  // Loading the program allocates a lot once. Without this the young generation grows for it and never shrinks again;
  // the server lets it grow once it is up. Set first: the compile cache is bound to the flags of V8.
  v8.setFlagsFromString("--semi-space-growth-factor=1");
  // Keeps what type stripping and compilation gave. Node compares each entry with the file it was made from.
  module.enableCompileCache(CACHE);
}
