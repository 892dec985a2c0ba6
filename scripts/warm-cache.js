// Runs after npm ci. This folder is the current version from now on, whatever `berth upgrade` made current before.
// Then the server is compiled and the console built, so that the first start and visit are as quick as the others: only
// a convenience, so whatever keeps it from working does not fail the install.
import { rmSync } from "node:fs";
import module from "node:module";
import { join } from "node:path";

/** What a start loads. */
const LOADED = ["main", "operator/up", "app", "node/drivers/local/local-driver", "node/sandboxd-build"];

rmSync(join(import.meta.dirname, "../versions/current"), { force: true });

try {
  const { writePack } = await import("./module-pack.js");
  writePack({ reuse: false });
  const { tuneStart } = await import("../bin/tune-start.js");
  tuneStart();
  for (const name of LOADED) await import(`../src/${name}.ts`);
  module.flushCompileCache();
} catch {
  console.error("berth: the first start will take a moment longer than later ones.");
}

try {
  const { consoleBundle } = await import("../src/api/console/bundle.ts");
  await consoleBundle(null);
} catch {
  console.error("berth: the console is built at the first visit.");
}
