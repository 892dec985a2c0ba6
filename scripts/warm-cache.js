// Runs after npm ci: compiles the server once, so that the first start is as quick as the others. Only a convenience,
// so whatever keeps it from working does not fail the install.
import module from "node:module";

try {
  const { tuneStart } = await import("../bin/tune-start.js");
  tuneStart();
  await Promise.all([import("../src/main.ts"), import("../src/operator/up.ts"), import("../src/app.ts")]);
  module.flushCompileCache();
} catch {
  console.error("berth: the first start will take a moment longer than later ones.");
}
