import assert from "node:assert/strict";
import { test } from "node:test";
import { afterDeployment, afterListing, type ListedTool } from "./tool-state.ts";

const tool = (name: string, definition: string): ListedTool => ({ name, hash: definition, definition });
const many = (count: number, word: string, definition: string): ListedTool[] =>
  Array.from({ length: count }, (_, at) => tool(`${word}${at}`, definition));

test("a changed tool is withheld however many other tools a server makes up before, in a bounded record", () => {
  const state = afterDeployment([...many(500, "tool", "old"), tool("last", "old")], "1");
  const flooded = afterListing(state, many(500, "junk", "x".repeat(10_000)), 1);
  assert.ok(flooded);
  let turned = afterListing(flooded, [...many(500, "tool", "y".repeat(10_000)), tool("last", "new")], 2);
  turned = turned && afterListing(turned, many(500, "tool", "z".repeat(10_000)), 3);
  assert.equal(turned?.withheld.last?.hash, "new");
  assert.equal(Object.keys(turned?.withheld ?? {}).length, 64 + 501);
  const kept = Object.values(turned?.withheld ?? {}).reduce((sum, { definition }) => sum + definition.length, 0);
  assert.ok(kept <= 64 * 4096, String(kept));
});
