// What makes a start quick; see docs/decisions/operator-start-up.md for the measurements.
import module from "node:module";
import { CACHE, isCacheOurs, usePack } from "./module-pack.js";

export function tuneStart() {
  if (!isCacheOurs()) return;
  // Keeps what compilation gave. Node compares each entry with the file it was made from.
  module.enableCompileCache(CACHE);
  usePack();
}
