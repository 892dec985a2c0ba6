import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { installation } from "./installation.ts";

test("the guide for operators names everything in the data folder", async () => {
  const { root, home } = await installation();
  const guide = readFileSync(join(root, "docs/operations.md"), "utf8");
  const [, chapter = ""] = guide.split(/^## The data folder$/m);
  const [table = ""] = chapter.split(/^## /m);
  const named = [...table.matchAll(/`([a-z][\w.-]+)\/?`/g)].map(([, name = ""]) => name);
  // A database has files beside it, and what is being written has a longer name until it is whole.
  const unnamed = readdirSync(join(home, ".berth")).filter((entry) => !named.some((name) => entry.startsWith(name)));
  assert.deepEqual(unnamed, []);
  for (const name of ["berth.sqlite", "secret.key", "runtime", "blobs", "logs", "reserve"])
    assert.ok(named.includes(name), name);
});
