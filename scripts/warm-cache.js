// Runs after npm ci: bundles and compiles the server once, so that the first start is as quick as the others. Only a
// convenience, so whatever keeps it from working does not fail the install.
import module from "node:module";
import { pathToFileURL } from "node:url";

try {
  const { ROOT } = await import("../bin/bundle.js");
  const { tuneStart } = await import("../bin/tune-start.js");
  tuneStart();
  const { LOADED, loadedFiles, makeBundle } = await import("./bundle.js");
  const folder = makeBundle();
  const files = folder ? loadedFiles(folder) : LOADED.map((name) => `${ROOT}/src/${name}.ts`);
  for (const file of files) await import(pathToFileURL(file).href);
  module.flushCompileCache();
} catch {
  console.error("berth: the first start will take a moment longer than later ones.");
}
