/** The typed client against the real platform. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ApiError } from "../../src/client/api-error.ts";
import { type Client, createClient } from "../../src/client/client.ts";
import type { Operation } from "../../src/contract/operation.ts";
import { OPERATIONS } from "../../src/kinds/index.ts";
import { workspaceCreate, workspaceGet } from "../../src/kinds/workspace/operations.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

let platform: TestPlatform;
let client: Client;
before(async () => {
  platform = await startTestPlatform();
  client = createClient({ url: platform.url, apiKey: platform.apiKey, workspace: "main" });
});
after(() => platform.stop());

test("a declared operation is called with the types of its declaration", async () => {
  const made = await client.call(workspaceCreate, { body: { name: "typed", displayName: "Typed" } });
  const read = await client.call(workspaceGet, {
    params: { workspaceName: "typed" },
    query: { countResources: true },
  });
  const displayName: string = read.displayName;
  assert.deepEqual([made.name, displayName], ["typed", "Typed"]);
  assert.equal(typeof read.resourceCounts, "object");
});

test("an error carries the server's words", async () => {
  const error = await client
    .call(workspaceGet, { params: { workspaceName: "nowhere" } })
    .catch((caught: unknown) => caught);
  assert.ok(error instanceof ApiError);
  assert.deepEqual([error.status, error.code], [404, "not_found"]);
  assert.match(error.requestId ?? "", /^req-/);
});

const lists = OPERATIONS.filter(({ verb, params }) => verb === "list" && params.length === 0);

for (const operation of lists) {
  test(`${operation.id} is walked to its end`, async () => {
    const items: unknown[] = [];
    for await (const item of client.items(operation as Operation)) items.push(item);
    assert.ok(items.length < 1000);
  });
}
