/** A hostile workload that wants the token of the person who looks at it to be used at another address. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { requestTo } from "../../console/lib/workload-request.ts";

const ADDRESS = "http://127.0.0.1:1/team/sandboxes/box";

test("an id that a workload made up leads to no other address", () => {
  for (const path of [
    "/filesystem-multipart/../../../../v0/workspaces/team?x=/complete",
    "/process/%2e%2e/%2E./../../sandboxes/other/process",
    "/process/..\\..\\..\\other",
    "/process/../../box2/process",
    "/../box",
    "@127.0.0.2/",
  ])
    assert.throws(() => requestTo(ADDRESS, { method: "DELETE", path }, "token"), /not its own/, path);
  assert.equal(
    requestTo(ADDRESS, { path: "/filesystem/%2Fa%2F..%2Fb?download=true" }, "token").url,
    `${ADDRESS}/filesystem/%2Fa%2F..%2Fb?download=true`,
  );
});

test("a redirect of a workload is not followed", async (t) => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(307, { location: "/v0/workspaces/team" }).end();
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/team/sandboxes/box`;
  await assert.rejects(fetch(requestTo(address, { method: "DELETE", path: "/filesystem/%2Fa" }, "token")), TypeError);
  assert.deepEqual(asked, ["DELETE /team/sandboxes/box/filesystem/%2Fa"]);
});
