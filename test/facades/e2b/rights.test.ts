/** E2B's API asks for the same rights as the platform's own, and tells strangers nothing. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { makeServiceAccount, makeUser } from "../../identities.ts";
import { startTestPlatform, type TestPlatform } from "../../platform.ts";

let platform: TestPlatform;
/** Id of a sandbox in the workspace `main`. */
let id: string;
/** Works in the workspace `second` only. */
let stranger: string;

interface Sent {
  key?: string | null;
  headers?: Record<string, string>;
  body?: unknown;
}

async function ask(method: string, path: string, { key = platform.apiKey, headers = {}, body }: Sent = {}) {
  const answer = await fetch(`${platform.url}/e2b${path}`, {
    method,
    headers: { ...(key === null ? {} : { "x-api-key": key }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === "" ? null : JSON.parse(text) };
}

before(async () => {
  platform = await startTestPlatform();
  await platform.call("POST", "/workspaces", { body: { name: "second" } });
  stranger = (await makeServiceAccount(platform.app.store, "second")).key;
  const headers = { "x-service-workspace": "main" };
  const made = await ask("POST", "/v2/sandboxes", { headers, body: { templateID: "base", metadata: { a: "b" } } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  id = made.body.sandboxID;
});
after(() => platform.stop());

test("a sandbox of another tenant looks like one that does not exist", async () => {
  for (const asked of [id, "none-main"]) {
    assert.equal((await ask("GET", `/sandboxes/${asked}`, { key: stranger })).status, 404, asked);
    assert.equal((await ask("DELETE", `/sandboxes/${asked}`, { key: stranger })).status, 404, asked);
    assert.equal(
      (await ask("POST", `/sandboxes/${asked}/timeout`, { key: stranger, body: { timeout: 1 } })).status,
      404,
    );
    for (const port of ["49983", "8080"]) {
      const headers = { "e2b-sandbox-id": asked, "e2b-sandbox-port": port, "x-access-token": stranger };
      assert.equal((await ask("GET", "/health", { key: null, headers })).status, 502, asked);
    }
  }
  assert.deepEqual((await ask("GET", "/v2/sandboxes", { key: stranger })).body, []);
  assert.equal((await ask("GET", `/sandboxes/${id}`)).body.state, "running");
});

test("credentials are needed, and their scopes count", async () => {
  const reader = (await makeUser(platform.app.store, null, "member", { main: "member" }, ["sandboxes:get"])).key;
  assert.equal((await ask("GET", `/sandboxes/${id}`, { key: null })).status, 401);
  assert.equal((await ask("GET", `/sandboxes/${id}`, { key: "wrong" })).status, 401);
  assert.equal((await ask("GET", `/sandboxes/${id}`, { key: reader })).status, 200);
  assert.equal((await ask("DELETE", `/sandboxes/${id}`, { key: reader })).status, 403);
  assert.equal((await ask("POST", "/v2/sandboxes", { key: reader, body: {} })).status, 403);
  const headers = { "e2b-sandbox-id": id, "x-access-token": reader };
  assert.equal((await ask("GET", "/health", { key: null, headers })).status, 403);
});

test("what the platform does not have is refused", async () => {
  const refused = async (body: object) => (await ask("POST", "/v2/sandboxes", { key: stranger, body })).status;
  assert.equal(await refused({ mcp: {} }), 400);
  assert.equal(await refused({ network: { egressProxy: { address: "a:1" } } }), 400);
  assert.equal(await refused({ templateID: "no-such-image" }), 400);
  assert.equal((await ask("POST", "/volumes", { body: {} })).status, 404);
  assert.equal((await ask("PUT", `/sandboxes/${id}`, { body: {} })).status, 405);
});

test("E2B's lists of addresses become rules of the firewall", async () => {
  const body = { network: { allowOut: ["api.example.com", "10.0.0.0/8"], denyOut: ["0.0.0.0/0"] } };
  const made = await ask("POST", "/v2/sandboxes", { key: stranger, body });
  const { metadata, spec } = (await platform.call("GET", `/sandboxes/${made.body.alias}`, { workspace: "second" }))
    .body;
  assert.equal(metadata.labels["e2b-template"], "base");
  assert.deepEqual(spec.network.firewall.rules, [
    { action: "allow", domains: ["api.example.com"] },
    { action: "allow", cidr: "10.0.0.0/8" },
    { action: "deny", domains: ["*"] },
    { action: "deny", cidr: "0.0.0.0/0" },
    { action: "deny", cidr: "::/0" },
  ]);
});

test("a program in a sandbox gets the request without the caller's credentials", async (t) => {
  const server = createServer((req, res) => res.end(JSON.stringify({ url: req.url, headers: req.headers })));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const port = String((server.address() as AddressInfo).port);
  const headers = {
    "e2b-sandbox-id": id,
    "e2b-sandbox-port": port,
    "x-access-token": platform.apiKey,
    "x-own": "kept",
  };
  const { status, body } = await ask("GET", "/execute?x=1", { headers });
  assert.deepEqual([status, body.url, body.headers["x-own"]], [200, "/execute?x=1", "kept"]);
  assert.ok(!JSON.stringify(body.headers).includes(platform.apiKey));
});

test("a create at E2B's address is in the audit log", async () => {
  const { body } = await platform.call("GET", "/audit?limit=200", { workspace: "main" });
  const entries: { operation?: string; action?: string }[] = body.data;
  assert.ok(JSON.stringify(entries).includes("sandboxCreate"), JSON.stringify(entries[0]));
});
