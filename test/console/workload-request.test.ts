/** A hostile workload that wants the token of the person who looks at it to be used at another address. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { textOfAnswer, textOfEvent, textOfMessage } from "../../console/lib/answer-text.ts";
import { textOf } from "../../console/lib/bounded.ts";
import { pathSegment } from "../../console/lib/path-segment.ts";
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

test("the id of a thread that leads out of the threads is refused", () => {
  for (const id of ["", ".", ".."]) assert.throws(() => pathSegment(id), /cannot stand in an address/, id);
  const path = new URL(`/v0/agents/a/threads/${pathSegment("%2e%2e/../x?y")}`, ADDRESS);
  assert.equal(path.href, "http://127.0.0.1:1/v0/agents/a/threads/%252e%252e%2F..%2Fx%3Fy");
});

test("an answer that never ends is cut off", async () => {
  const endless = new ReadableStream<Uint8Array>({ pull: (to) => to.enqueue(new Uint8Array(64 * 1024)) });
  await assert.rejects(textOf(new Response(endless), 1024 * 1024), /longer than 1 MB/);
  assert.equal(await textOf(new Response("short"), 1024), "short");
});

test("the text of an answer is found in the shapes that agents send", () => {
  assert.deepEqual(
    ['"a"', '{"choices":[{"delta":{"content":"b"}}]}', '{"delta":"c"}', "plain", "[DONE]", '{"done":true}', "null"].map(
      textOfEvent,
    ),
    ["a", "b", "c", "plain", "", "", ""],
  );
  assert.equal(textOfAnswer('{"output": "said"}'), "said");
  assert.equal(textOfAnswer('{"rows": [1]}'), '{\n  "rows": [\n    1\n  ]\n}');
  assert.equal(textOfAnswer("<b>no JSON</b>"), "<b>no JSON</b>");
  assert.equal(textOfMessage({ role: "user", content: [{ type: "text", text: "a" }, { text: "b" }] }), "a\nb");
  assert.equal(textOfMessage({ role: "tool", content: { x: 1 } }), '{\n  "x": 1\n}');
});
