/** What a server loads at its start stays in its memory for good; what it never needs must not be among it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

const APP = join(import.meta.dirname, "../../src/app.ts");
/** Built-in modules that are large and belong to what only some requests need. */
const LARGE = ["internal/deps/undici/undici"];

test("a server that starts loads no large part of Node that it does not use", () => {
  const script = `await import(${JSON.stringify(APP)}); console.log(process.moduleLoadList.join("\\n"))`;
  const loaded = execFileSync(process.execPath, ["--no-warnings", "--input-type=module", "--eval", script], {
    encoding: "utf8",
  });
  assert.match(loaded, /NativeModule http$/m);
  for (const name of LARGE) assert.ok(!loaded.includes(name), `${name} is loaded; see src/lib/network/node-http.ts`);
});
