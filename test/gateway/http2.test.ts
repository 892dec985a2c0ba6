/** Requests that arrive over HTTP/2 are served like any other. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, createServer } from "node:http2";
import { test } from "node:test";
import { listen, OK, rawUpstream, startTestGateway } from "./harness.ts";

test("methods, bodies, cookies, events and aborts over HTTP/2", async (t) => {
  await using up = await rawUpstream((socket, received) => {
    socket.on("data", () => {
      const last = received().split("HTTP/1.1\r\n").length;
      if (last > 2 || received().includes("/stream")) {
        socket.write(
          "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n",
        );
      } else if (received().endsWith("0\r\n\r\n")) socket.write(OK);
    });
  });
  await using gw = await startTestGateway({ upstream: up.port });
  // Node's HTTP/2 server offers the same request and response objects to those who want them.
  const server = createServer((request, response) => {
    const [req, res] = [request as unknown as IncomingMessage, response as unknown as ServerResponse];
    gw.gateway.request(req, res, gw.gateway.route(req));
  });
  const port = await listen(server);
  t.after(() => server.close());
  const session = connect(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  const headers = { authorization: "Bearer good", cookie: ["x=1", "y=2"] };
  const post = session.request({ ":method": "POST", ":path": "/ws/agents/a//p?q", ...headers });
  post.end("hello");
  const [answer] = await once(post, "response");
  let body = "";
  for await (const chunk of post) body += chunk;
  assert.deepEqual([answer[":status"], body], [200, "ok"]);
  const head = up.received[0] ?? "";
  assert.match(head, /^POST \/\/p\?q HTTP\/1\.1\r\n/);
  assert.match(head, new RegExp(`\r\nHost: 127\\.0\\.0\\.1:${port}\r\n`));
  assert.match(head, /\r\ncookie: x=1; y=2\r\n/);
  assert.doesNotMatch(head, /authorization|:path/);
  assert.ok(head.endsWith("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));

  const stream = session.request({ ":path": "/ws/agents/a/stream", ...headers });
  const [begun] = await once(stream, "response");
  assert.deepEqual(begun["set-cookie"], ["a=1; Path=/ws/agents/a", "b=2; Path=/ws/agents/a"]);
  const [first] = await once(stream, "data");
  assert.equal(String(first), "one");
  const record = gw.nextRecord();
  stream.close();
  assert.equal((await record).clientGone, true);

  const refused = session.request({ ":path": "/ws/agents/none", ...headers });
  const [no] = await once(refused, "response");
  assert.deepEqual([no[":status"], no["x-berth-source"]], [404, "platform"]);
});
