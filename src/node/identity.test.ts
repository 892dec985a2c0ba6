import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { identityOf } from "./identity.ts";

function folder(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), "identity-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const given = { dataDir, machineName: "host", olderId: "host/12345678" };
  return { dataDir, identify: (name?: string) => identityOf({ ...given, name }) };
}

test("a new folder gets an id of its own once, and the machine's name", (t) => {
  const { identify } = folder(t);
  const first = identify();
  assert.match(first.id, /^node-[a-z0-9]{12}$/);
  assert.equal(first.name, "host");
  assert.deepEqual(identify(), first);
  assert.notEqual(folder(t).identify().id, first.id);
});

test("a folder of an older version goes on with the id that its meters have", (t) => {
  const { dataDir, identify } = folder(t);
  mkdirSync(join(dataDir, "runtime"));
  assert.deepEqual(identify(), { id: "host/12345678", name: "host" });
  assert.deepEqual(JSON.parse(readFileSync(join(dataDir, "node.json"), "utf8")), identify());
});

test("the operator's name wins over the file, and is not written into it", (t) => {
  const { identify } = folder(t);
  const { id } = identify();
  assert.deepEqual(identify("left"), { id, name: "left" });
  assert.deepEqual(identify(), { id, name: "host" });
});

test("a broken file is refused, not replaced: another id would lose every workload", (t) => {
  const { dataDir, identify } = folder(t);
  writeFileSync(join(dataDir, "node.json"), "{");
  assert.throws(() => identify(), /node\.json cannot be read/);
  assert.equal(readFileSync(join(dataDir, "node.json"), "utf8"), "{");
});
