import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { AddressRefused } from "./outbound-http.ts";
import { createOutboundPost } from "./outbound-post.ts";

const got: { url: string | undefined; body: string }[] = [];
const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  got.push({ url: request.url, body });
  if (request.url === "/moved") response.writeHead(302, { location: "/elsewhere" });
  // An answer that never ends.
  if (request.url === "/endless") setInterval(() => response.write("x".repeat(100_000)), 1).unref();
  else response.end();
}).listen(0, "127.0.0.1");
await once(server, "listening");
after(() => {
  server.close();
  server.closeAllConnections();
});
const { port } = server.address() as AddressInfo;
const { signal } = new AbortController();
const sent = (url: string, allowed: boolean): Promise<number> =>
  createOutboundPost({ privateAddresses: allowed })({ url, headers: {}, body: "hi", signal });

test("private addresses are dialled only where that is allowed, whatever they are called", async () => {
  for (const host of ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"])
    await assert.rejects(sent(`http://${host}:${port}/`, false), AddressRefused, host);
  for (const host of ["169.254.169.254", "0.0.0.0", "[fe80::1]", "224.0.0.1"])
    await assert.rejects(sent(`http://${host}:${port}/`, true), AddressRefused, host);
  assert.deepEqual(got, []);
  assert.equal(await sent(`http://localhost:${port}/a`, true), 200);
  assert.deepEqual(got, [{ url: "/a", body: "hi" }]);
});

test("a redirect is an answer, and an answer without an end is cut off", async () => {
  got.length = 0;
  assert.equal(await sent(`http://127.0.0.1:${port}/moved`, true), 302);
  assert.equal(await sent(`http://127.0.0.1:${port}/endless`, true), 200);
  assert.deepEqual(
    got.map(({ url }) => url),
    ["/moved", "/endless"],
  );
});
