// Runs after npm ci: compiles the server once, so that the first start is as quick as the others. Only a convenience,
// so whatever keeps it from working does not fail the install.
import module from "node:module";

/** What a start loads. */
const LOADED = ["main", "operator/up", "app", "node/drivers/local/local-driver", "node/sandboxd-build"];

try {
  const { tuneStart } = await import("../bin/tune-start.js");
  tuneStart();
  for (const name of LOADED) await import(`../src/${name}.ts`);
  module.flushCompileCache();
} catch {
  console.error("berth: the first start will take a moment longer than later ones.");
}
