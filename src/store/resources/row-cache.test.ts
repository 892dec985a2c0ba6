import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceRow } from "../database/schema.ts";
import { RowCache } from "./row-cache.ts";

const SCOPE = { workspace: "main", kind: "drive", parent: "" };

const row = (uid: string, slot: string, spec = "{}"): ResourceRow => ({
  id: null,
  uid,
  ...SCOPE,
  name: slot,
  slot,
  external_id: null,
  status: null,
  generation: 1,
  observed_generation: 1,
  version: 1,
  created_at: 0,
  updated_at: 0,
  deleted_at: null,
  created_by: "",
  updated_by: "",
  metadata: "{}",
  spec,
  secrets: null,
  state: "{}",
  events: "[]",
  search: slot,
  node: null,
  status_at: 0,
});

test("a row that gave its name free is no longer found under it", () => {
  const cache = new RowCache();
  cache.put(row("u1", "one"));
  cache.put(row("u1", "~u1"));
  assert.equal(cache.bySlot(SCOPE, "one"), undefined);
  cache.put(row("u2", "one"));
  cache.forget("u1");
  assert.equal(cache.bySlot(SCOPE, "one")?.uid, "u2");
  assert.equal(cache.byUid("u1"), undefined);
});

test("memory is bounded, and one large row does not push the others out", () => {
  const cache = new RowCache();
  cache.put(row("small", "small"));
  cache.put(row("huge", "huge", "x".repeat(100_000)));
  assert.equal(cache.byUid("huge"), undefined);
  assert.ok(cache.byUid("small"));
  for (let n = 0; n < 1000; n += 1) cache.put(row(`u${n}`, `n${n}`, "x".repeat(60_000)));
  const kept = Array.from({ length: 1000 }, (_, n) => cache.byUid(`u${n}`)).filter(Boolean);
  assert.ok(kept.length > 100 && kept.length < 150, `${kept.length} rows of 60 kB are kept`);
  assert.ok(cache.byUid("u999"));
});
