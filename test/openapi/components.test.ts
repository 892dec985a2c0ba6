/** openapi.json says the same with named schemas as with all of them in place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildOpenApi } from "../../src/contract/openapi.ts";
import { withComponents } from "../../src/contract/openapi-components.ts";
import { OPERATIONS } from "../../src/kinds/index.ts";
import { inlined } from "./document.ts";

test("named schemas change nothing but the place where a schema stands", () => {
  const whole = JSON.parse(
    JSON.stringify(buildOpenApi(OPERATIONS, { version: "0", brand: "service", serverUrl: "http://127.0.0.1" })),
  ) as { paths: object; components: { schemas: object } };
  const named = withComponents(whole) as typeof whole;
  assert.deepEqual(inlined(named).paths, inlined(whole).paths);
  const names = Object.keys(named.components.schemas);
  for (const name of ["Error", "Sandbox", "SandboxCreate", "Agent", "Volume"]) assert.ok(names.includes(name), name);
  const refs = new Set<string>(JSON.stringify(named).match(/#\/components\/schemas\/\w+/g));
  assert.deepEqual(
    names.filter((name) => !refs.has(`#/components/schemas/${name}`)),
    [],
  );
});
