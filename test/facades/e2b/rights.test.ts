/** E2B's API asks for the same rights as the platform's own, and tells strangers nothing. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { makeServiceAccount, makeUser } from "../../identities.ts";
import { startTestPlatform, type TestPlatform } from "../../platform.ts";

let platform: TestPlatform;
/** Id of a sandbox in the workspace `main`, and the token that its maker got for it. */
let id: string;
let token: string;
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
  ({ sandboxID: id, envdAccessToken: token } = made.body);
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

test("without valid credentials a sandbox that is there looks like one that is not", async () => {
  const forged = `e2b_${"k".repeat(8)}.${"u".repeat(8)}.${"m".repeat(43)}`;
  for (const secret of [null, "wrong", forged, `${token.slice(0, -43)}${"m".repeat(43)}`])
    for (const path of ["/health", "/sandboxes/{id}/metrics"]) {
      const answers = [];
      for (const asked of [id, "none-main", "none.main"]) {
        const headers = { "e2b-sandbox-id": asked, ...(secret === null ? {} : { "x-access-token": secret }) };
        const { status, body } = await ask("GET", path.replace("{id}", asked), { key: null, headers });
        assert.equal(status, 401, `${path} ${asked} ${secret}`);
        delete body.error?.timestamp;
        answers.push(
          JSON.stringify(body)
            .replaceAll(asked, "ID")
            .replaceAll(/"[^"]*(?:id|Id)":"[^"]*",?/g, ""),
        );
      }
      assert.deepEqual(answers, [answers[0], answers[0], answers[0]]);
    }
  // A client that has the token of a sandbox which is gone is told so.
  const gone = (await ask("POST", "/v2/sandboxes", { headers: { "x-service-workspace": "main" }, body: {} })).body;
  assert.equal((await ask("DELETE", `/sandboxes/${gone.sandboxID}`)).status, 204);
  const headers = { "e2b-sandbox-id": "none-main", "x-access-token": gone.envdAccessToken };
  assert.equal((await ask("GET", "/health", { key: null, headers })).status, 502);
});

test("a create that is sent again with its Idempotency-Key makes nothing new", async () => {
  const headers = { "x-service-workspace": "main", "idempotency-key": "once" };
  const make = async (more: object = {}) => {
    const { status, body } = await ask("POST", "/v2/sandboxes", {
      headers: { ...headers, ...more },
      body: { timeout: 60 },
    });
    assert.equal(status, 201, JSON.stringify(body));
    return body.sandboxID;
  };
  const first = await make();
  assert.equal(await make(), first);
  assert.notEqual(await make({ "idempotency-key": "twice" }), first);
});

test("files for a build are taken from callers who may build, at addresses that the server made", async () => {
  const reader = (await makeUser(platform.app.store, null, "member", { main: "member" }, ["sandboxes:get"])).key;
  assert.equal((await ask("POST", "/v3/templates", { key: reader, body: { name: "painted" } })).status, 403);
  assert.equal((await ask("GET", "/templates/painted/files/abc", { key: reader })).status, 403);
  const forged = `${Buffer.from('["a","b",9999999999999]').toString("base64url")}.${"m".repeat(43)}`;
  assert.equal((await ask("PUT", `/template-files/${forged}`, { key: null, body: {} })).status, 403);
  for (const name of ["", "Not A Name", "a:b:c"]) {
    const { status, body } = await ask("POST", "/v3/templates", { body: { name, tags: ["d"] } });
    assert.ok(status >= 400 && status < 500, JSON.stringify(body));
  }
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

test("a token opens its sandbox and nothing else, until its key is deleted", async () => {
  const robot = await makeServiceAccount(platform.app.store, "main");
  const mine = (await ask("GET", `/sandboxes/${id}`, { key: robot.key })).body.envdAccessToken;
  assert.ok(mine !== token && !mine.includes(robot.key));
  const other = await ask("POST", "/v2/sandboxes", { key: robot.key, body: {} });
  // Nothing listens at this port: a caller who is let in learns that.
  const enter = async (sandbox: string, secret: string) => {
    const headers = { "e2b-sandbox-id": sandbox, "e2b-sandbox-port": "1", "x-access-token": secret };
    const { status, body } = await ask("GET", "/", { key: null, headers });
    return body.error?.code === "WORKLOAD_NOT_LISTENING" ? "in" : status;
  };
  assert.deepEqual([await enter(id, mine), await enter(other.body.sandboxID, mine)], ["in", 401]);
  assert.equal(await enter(id, `${mine.slice(0, -2)}${mine.at(-2) === "A" ? "B" : "A"}${mine.at(-1)}`), 401);
  assert.equal((await ask("GET", `/sandboxes/${id}`, { key: mine })).status, 401);
  const [key] = await platform.app.store.keys.listKeys("service_account", robot.sub);
  await platform.app.store.keys.removeKey("service_account", robot.sub, key?.id ?? "");
  assert.equal(await enter(id, mine), 401);
});

test("a signed address opens one file for one operation, until its time is over or its signer's key is deleted", async () => {
  const robot = await makeServiceAccount(platform.app.store, "main");
  const { sandboxID, envdAccessToken } = (await ask("POST", "/v2/sandboxes", { key: robot.key, body: {} })).body;
  const soon = Math.floor(Date.now() / 1000) + 3600;
  const past = soon - 7200;
  /** As `getSignature` of E2B's package writes it. */
  const sign = (path: string, operation: string, until?: number, secret = envdAccessToken): string => {
    const text = `${path}:${operation}::${secret}${until === undefined ? "" : `:${until}`}`;
    return `v1_${createHash("sha256").update(text).digest("base64").replace(/=+$/, "")}`;
  };
  const open = async (query: Record<string, string>, { method = "GET", sandbox = sandboxID, path = "/files" } = {}) =>
    (
      await ask(method, `${path}?${new URLSearchParams(query)}`, {
        key: null,
        headers: { "e2b-sandbox-id": sandbox },
      })
    ).status;
  const signature = sign("/tmp/a b", "read");
  const isIn = async (...asked: Parameters<typeof open>) => (await open(...asked)) !== 401;
  assert.equal(await isIn({ path: "/tmp/a b", signature }), true);
  assert.equal(await isIn({ path: "/tmp/a b", signature: sign("/tmp/a b", "write") }, { method: "POST" }), true);
  const timed = { path: "/tmp/a", signature: sign("/tmp/a", "read", soon), signature_expiration: String(soon) };
  assert.equal(await isIn(timed), true);
  const refused: [string, ...Parameters<typeof open>][] = [
    ["another file", { path: "/tmp/b", signature }],
    ["another operation", { path: "/tmp/a b", signature }, { method: "POST" }],
    ["another user", { path: "/tmp/a b", signature, username: "root" }],
    ["another sandbox", { path: "/tmp/a b", signature }, { sandbox: id }],
    ["another endpoint", { path: "/tmp/a b", signature }, { path: "/health" }],
    ["another token", { path: "/tmp/a", signature: sign("/tmp/a", "read", undefined, token) }],
    ["too late", { path: "/tmp/a", signature: sign("/tmp/a", "read", past), signature_expiration: String(past) }],
    ["a longer time", { ...timed, signature_expiration: String(soon + 1) }],
    ["no time", { path: "/tmp/a", signature: timed.signature }],
    ["no signature", { path: "/tmp/a b" }],
  ];
  for (const [what, ...asked] of refused) assert.equal(await open(...asked), 401, what);
  const [key] = await platform.app.store.keys.listKeys("service_account", robot.sub);
  await platform.app.store.keys.removeKey("service_account", robot.sub, key?.id ?? "");
  assert.equal(await open({ path: "/tmp/a b", signature }), 401);
});

test("a connection never brings the end of a sandbox nearer, and gives none to a sandbox of the platform's own", async () => {
  const endOf = async (path: string, timeout: number): Promise<string> =>
    (await ask("POST", `/sandboxes/${path}/connect`, { body: { timeout } })).body.endAt;
  const before = (await ask("GET", `/sandboxes/${id}`)).body.endAt;
  assert.equal(await endOf(id, 1), before);
  assert.ok((await endOf(id, 3600)) > before);
  assert.equal((await platform.call("POST", "/sandboxes", { body: { metadata: { name: "kept" } } })).status, 200);
  await endOf("kept-main", 300);
  assert.equal((await platform.call("GET", "/sandboxes/kept")).body.spec.runtime.expires, undefined);
});

test("what the platform does not have is refused", async () => {
  const refused = async (body: object) => (await ask("POST", "/v2/sandboxes", { key: stranger, body })).status;
  assert.equal(await refused({ mcp: {} }), 400);
  assert.equal(await refused({ network: { allowPublicTraffic: true } }), 400);
  assert.equal(await refused({ network: { egressProxy: { address: "a:1" } } }), 400);
  assert.equal(await refused({ templateID: "no-such-image" }), 400);
  for (const timeout of [1e300, -1, "soon"]) assert.equal(await refused({ timeout }), 400, String(timeout));
  assert.equal(await refused({ volumeMounts: [null] }), 400);
  assert.equal((await ask("POST", "/volumes", { body: {} })).status, 404);
  for (const path of ["/sandboxes/%zz", "/v2/sandboxes?metadata=%2525zz%3D1"])
    assert.equal((await ask("GET", path)).status, 400, path);
  assert.equal((await ask("GET", "//:x/sandboxes")).status, 404);
  for (const port of ["0", "1.5", "65536", "x"]) {
    const headers = { "e2b-sandbox-id": id, "e2b-sandbox-port": port, "x-access-token": token };
    assert.equal((await ask("GET", "/", { key: null, headers })).status, 400, port);
  }
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
  const named = { "e2b-sandbox-id": id, "e2b-sandbox-port": port, "x-own": "kept" };
  for (const [field, secret] of [
    ["x-access-token", token],
    ["e2b-traffic-access-token", token],
    ["x-access-token", platform.apiKey],
    ["authorization", `Bearer ${token}`],
  ] as const) {
    const { status, body } = await ask("GET", "/execute?x=1", { key: null, headers: { ...named, [field]: secret } });
    assert.deepEqual([status, body.url, body.headers["x-own"]], [200, "/execute?x=1", "kept"]);
    assert.ok(!JSON.stringify(body.headers).includes(secret), field);
  }
  const query = await ask("GET", "?x=1", { key: null, headers: { ...named, "x-access-token": token } });
  assert.deepEqual([query.status, query.body?.url], [200, "/?x=1"]);
  assert.equal((await ask("GET", "/", { key: null, headers: named })).status, 401);
  // The same port by the name that `getHost` gives it.
  const byHost = (headers: Record<string, string>, host = `${port}-${id}.localhost`) =>
    new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const { port: ours } = new URL(platform.url);
      get({ host: "127.0.0.1", port: ours, path: "/page?y=2", headers: { host, ...headers } }, async (answer) => {
        resolve({ status: answer.statusCode, text: (await answer.toArray()).join("") });
      }).on("error", reject);
    });
  const page = await byHost({ "e2b-traffic-access-token": token });
  assert.equal(page.status, 200, page.text);
  const seen: { url: string; headers: Record<string, string> } = JSON.parse(page.text);
  assert.deepEqual([seen.url, seen.headers["x-forwarded-prefix"]], ["/page?y=2", undefined]);
  assert.ok(!page.text.includes(token));
  assert.equal((await byHost({})).status, 401);
  assert.equal((await byHost({ "x-access-token": stranger })).status, 502);
  assert.equal((await byHost({ "x-access-token": token }, `${port}-none-main.localhost`)).status, 502);
});

test("a create at E2B's address is in the audit log", async () => {
  const { body } = await platform.call("GET", "/audit?limit=200", { workspace: "main" });
  const entries = body.data;
  assert.ok(JSON.stringify(entries).includes("sandboxCreate"), JSON.stringify(entries[0]));
});
