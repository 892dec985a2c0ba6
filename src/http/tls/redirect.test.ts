import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { test } from "node:test";
import { request } from "undici";
import { createRedirect } from "./redirect.ts";

test("plain HTTP is redirected to the same address, and only challenges are answered", async (t) => {
  const server = createRedirect({
    port: () => 8443,
    challengeAnswer: async (token) => (token === "known" ? "known.key" : null),
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const ask = async (path: string, host: string) => {
    const answer = await request(`http://127.0.0.1:${port}${path}`, { method: "POST", body: "x", headers: { host } });
    const text = await answer.body.text();
    return answer.headers.location ?? `${answer.statusCode} ${text}`;
  };
  assert.equal(await ask("/v0/x?a=b", "api.example:80"), "https://api.example:8443/v0/x?a=b");
  assert.equal(await ask("//other.example/", "api.example"), "https://api.example:8443//other.example/");
  assert.match(String(await ask("/", "bad host")), /^400/);
  assert.equal(await ask("/.well-known/acme-challenge/known", "api.example"), "200 known.key");
  assert.match(String(await ask("/.well-known/acme-challenge/other", "api.example")), /^https:/);
});

test("a client that sends half a request is cut off, also where another server took its connection", async (t) => {
  const redirect = createRedirect({ port: () => 8443, lifeMs: 50 });
  const listener = createServer((socket) => void redirect.emit("connection", socket));
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  t.after(() => listener.close());
  const client = connect((listener.address() as AddressInfo).port, "127.0.0.1");
  t.after(() => client.destroy());
  client.resume().write("GET / HT");
  await once(client, "close");
});
