import assert from "node:assert/strict";
import { test } from "node:test";
import { dialDaemon } from "./daemon-dial.ts";

test("a request that waits for a sandbox finds it at its new endpoint", async () => {
  const endpoints = ["before", "after"];
  const tried: string[] = [];
  const connected = await dialDaemon(
    () => endpoints.shift() ?? "after",
    async (endpoint) => {
      tried.push(endpoint);
      if (endpoint === "before") throw new Error("no such socket");
      return `connected to ${endpoint}`;
    },
  );
  assert.equal(connected, "connected to after");
  assert.deepEqual(tried, ["before", "after"]);
});
