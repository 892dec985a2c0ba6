// Makes the bundle that bin/berth.js runs when it is fresh; see bin/bundle.js.
import { execFileSync } from "node:child_process";
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { BUNDLE_PREFIX, bundleFolder, CACHE, ROOT } from "../bin/bundle.js";
import { findBun } from "../src/runtime/sandboxd-build.ts";

/** What is started, and what a start loads: under their names, so that they can be compiled beforehand. */
export const LOADED = ["main", "operator/up", "app", "runtime/drivers/local/local-driver", "runtime/sandboxd-build"];
const THREADS = ["store/sqlite-report-thread"];
const UNFINISHED_PREFIX = "making-";

/** Returns its folder, or null where no bundler is installed. Made beside and renamed: nobody runs half a bundle. */
export function makeBundle() {
  const bun = findBun();
  if (!bun) return null;
  mkdirSync(CACHE, { recursive: true });
  const folder = bundleFolder(); // before it is read: what changes meanwhile makes it stale
  // Also what an install that was killed has left.
  for (const old of globSync([`${BUNDLE_PREFIX}*`, `${UNFINISHED_PREFIX}*`], { cwd: CACHE }))
    rmSync(join(CACHE, old), { recursive: true });
  const unfinished = mkdtempSync(join(CACHE, UNFINISHED_PREFIX));
  try {
    build(bun, unfinished);
    renameSync(unfinished, folder);
    return folder;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

function build(bun, folder) {
  const entries = [...LOADED, ...THREADS].map((name) => join(ROOT, "src", `${name}.ts`));
  // Names are kept: they stand in logs and stacks.
  const options = ["--target=node", "--format=esm", "--splitting", "--minify-syntax", "--minify-whitespace"];
  // None of it is what Node was started with, whichever file it came from.
  options.push("--define=import.meta.main=false", `--outdir=${folder}`);
  // Elsewhere than beside a package.json, the name must say that they are modules.
  options.push("--entry-naming=[name].mjs", "--chunk-naming=[name]-[hash].mjs");
  execFileSync(bun, ["build", ...entries, ...options]);
  for (const name of globSync("*.mjs", { cwd: folder })) {
    const file = join(folder, name);
    writeFileSync(file, ascii(readFileSync(file, "utf8")));
  }
  chmodSync(folder, 0o755); // whoever may run the sources may run this
}

/** One character beyond ASCII would make Node keep the whole file with two bytes for each. */
const ascii = (code) =>
  code.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

export const loadedFiles = (folder) => LOADED.map((name) => join(folder, `${basename(name)}.mjs`));
