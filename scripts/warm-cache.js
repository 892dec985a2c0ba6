// Runs after npm ci: compiles the server once, so that the first start is as quick as the others. Only a convenience,
// so whatever keeps it from working does not fail the install.
import module from "node:module";

try {
  const { tuneStart } = await import("../bin/tune-start.js");
  tuneStart();
  await import("../src/main.ts");
  await import("../src/operator/up.ts");
  await import("../src/app.ts");
  await import("../src/runtime/drivers/local/local-driver.ts");
  await import("../src/runtime/sandboxd-build.ts");
  module.flushCompileCache();
} catch {
  console.error("berth: the first start will take a moment longer than later ones.");
}
