import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { trustInSystem } from "./system-trust.ts";

test("the system's store has the authority of the workspace while there is one, and only the newest", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "berth-trust-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const [folder, store, absent] = ["trust", "store.crt", "absent.crt"].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(folder);
  const own = "-----BEGIN CERTIFICATE-----\nof the image\n-----END CERTIFICATE-----\n";
  writeFileSync(store, own);
  const start = (): string => {
    trustInSystem(folder, [absent, store]);
    return readFileSync(store, "utf8");
  };
  assert.equal(start(), own, "no authority");
  writeFileSync(join(folder, "authority.pem"), "first\n");
  assert.match(start(), /^-----BEGIN[^#]*# .*begin\nfirst\n# .*end\n$/);
  assert.equal(start(), start(), "a second start");
  writeFileSync(join(folder, "authority.pem"), "second\n");
  assert.match(start(), /^-----BEGIN[^#]*# .*begin\nsecond\n# .*end\n$/);
  rmSync(join(folder, "authority.pem"));
  assert.equal(start(), own, "routes are gone");
});
