import assert from "node:assert/strict";
import { test } from "node:test";
import { extractSecrets, keepMasked, MASK, restoreSecrets } from "./secret-fields.ts";

const PATHS = ["spec.routing[=destinations].secrets.*"];

interface Route {
  destinations: string[];
  secrets: { key: string };
}

const route = (key: string, ...destinations: string[]): Route => ({ destinations, secrets: { key } });
const documentOf = (...routing: Route[]) => ({ spec: { routing } });

test("a masked secret stays with its destinations, wherever they stand, and goes to no others", () => {
  const current = documentOf(route("one", "a.test", "b.test"), route("two", "c.test"), route("three", "c.test"));
  const stored = extractSecrets(current, PATHS);
  const kept = (...routing: Route[]) => {
    const draft = documentOf(...routing);
    const lost = keepMasked(draft, PATHS, stored, current);
    return [...draft.spec.routing.map(({ secrets }) => secrets.key), ...lost];
  };
  assert.deepEqual(kept(route(MASK, "c.test"), route(MASK, "c.test"), route(MASK, "B.test", "a.test")), [
    ...["two", "three", "one"],
  ]);
  for (const destinations of [["evil.test"], ["a.test", "b.test", "evil.test"], []])
    assert.deepEqual(kept(route(MASK, ...destinations)), [undefined, "/spec/routing/0/secrets/key"]);
  assert.deepEqual(kept(route("new", "evil.test"), route(MASK, "c.test")), ["new", "two"]);
  restoreSecrets(current, PATHS, stored);
  assert.deepEqual(
    current.spec.routing.map(({ secrets }) => secrets.key),
    ["one", "two", "three"],
  );
});
