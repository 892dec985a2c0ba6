// The program in a few files instead of twelve hundred: quicker to load, and smaller in memory. It is a cache: it lies
// beside Node's own, is named by the state of all it was made from, and whoever changes a file runs the sources again.
// See docs/decisions/operator-start-up.md.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
export const CACHE = join(ROOT, "node_modules/.cache/berth");
export const BUNDLE_PREFIX = "bundle-";

/** Where the bundle of the sources as they are now lies, or would lie. */
export function bundleFolder() {
  const digest = createHash("sha256").update(ROOT);
  const add = (path) => {
    const stats = statSync(join(ROOT, path), { throwIfNoEntry: false });
    digest.update(`${path}\0${stats?.size}\0${stats?.mtimeMs}\0`);
  };
  // npm writes the second one whenever it changes what is installed.
  for (const path of ["bin/bundle.js", "node_modules/.package-lock.json", "scripts/bundle.js"]) add(path);
  const sources = readdirSync(join(ROOT, "src"), { recursive: true }).filter(isBundled);
  for (const path of sources.sort()) add(join("src", path));
  return join(CACHE, `${BUNDLE_PREFIX}${digest.digest("hex").slice(0, 16)}`);
}

/** Tests are not, nor is the daemon of the sandboxes, which is built by itself. */
const isBundled = (path) => path.endsWith(".ts") && !path.endsWith(".test.ts") && !path.startsWith("sandboxd/");

/** The module to run: of the bundle if there is one, of the sources otherwise. */
export function mainModule() {
  const bundled = join(bundleFolder(), "main.mjs");
  return pathToFileURL(existsSync(bundled) ? bundled : join(ROOT, "src/main.ts")).href;
}
