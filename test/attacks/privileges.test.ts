/** A caller hands out no more than it has: drives by labels, sandboxes that an admin keeps to some, roles, scopes. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { decodeJwt } from "jose";
import { WORKLOAD_SCOPES } from "../../src/kinds/workload/identity.ts";
import { makeServiceAccount, makeUser, makeWorkload } from "../identities.ts";
import { askToken, basic, GRANT } from "../identity/machine.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../platform.ts";

let platform: TestPlatform;
let member: string;
let robot: string;
/** Identities of code that runs here: without labels, and with those that open `vault` for reading below /pub. */
let plainCode: string;
let readingCode: string;

before(async () => {
  platform = await startTestPlatform();
  const { store } = platform.app;
  const { accountId } = (await store.workspaces.get("main")) ?? assert.fail();
  member = (await makeUser(store, accountId, "member", { main: "member" })).key;
  robot = (await makeServiceAccount(store, "main")).key;
  plainCode = (await makeWorkload(store, "main", [...WORKLOAD_SCOPES])).key;
  readingCode = (await makeWorkload(store, "main", [...WORKLOAD_SCOPES], { team: "readers" })).key;
  const permissions = [
    { labels: { team: "owners" }, mode: "read-write" },
    { labels: { team: "readers" }, mode: "read", path: "/pub" },
    { labels: { "service-name": "keeper", "service-type": "sandbox" }, mode: "read-write" },
  ];
  assert.equal((await post("/drives", "vault", { permissions })).status, 200);
  assert.equal((await post("/drives", "open", {})).status, 200);
});
after(() => platform.stop());

const call: TestPlatform["call"] = (method, path, options) =>
  platform.call(method, path, { workspace: "main", ...options });
const keyed = (key?: string) => (key === undefined ? {} : { key });
const post = (path: string, name: string, spec: object, labels?: Record<string, string>, key?: string) =>
  call("POST", path, { body: { metadata: { name, ...(labels && { labels }) }, spec }, ...keyed(key) });

/** What a caller may do inside a sandbox through its address. */
const inside = async (name: string, method: string, path: string, body: unknown, key: string) => {
  const answer = await fetch(`${platform.url}/main/sandboxes/${name}${path}`, {
    method,
    headers: { "x-service-authorization": `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, text: await answer.text() };
};

describe("labels that open a drive", () => {
  test("are not given by code that lacks them to what it makes", async () => {
    for (const [key, labels] of [
      [plainCode, { team: "owners" }],
      [plainCode, { team: "readers" }],
      [readingCode, { team: "owners" }],
      [plainCode, { team: "owners", other: "x" }],
    ] as const) {
      const { status, body } = await post("/sandboxes", "evil", {}, labels, key);
      assert.equal(status, 403, JSON.stringify(body));
      assert.match(body.message ?? "", /vault/);
    }
    const { status } = await post("/sandboxes", "keeper", {}, undefined, plainCode);
    assert.equal(status, 403, "a rule may name the sandbox itself");
  });

  test("are not added later, nor come by way of a fork", async () => {
    const box = await post("/sandboxes", "plain", {}, { color: "blue" }, plainCode);
    assert.equal(box.status, 200, JSON.stringify(box.body));
    const labelled = { ...box.body, metadata: { name: "plain", labels: { team: "owners" } } };
    assert.equal((await call("PUT", "/sandboxes/plain", { body: labelled, key: plainCode })).status, 403);
    assert.equal((await call("PUT", "/sandboxes/plain", { body: labelled, key: member })).status, 403);
    const again = await call("PUT", "/sandboxes/plain", { body: box.body, key: plainCode });
    assert.equal(again.status, 200, JSON.stringify(again.body));
    const fork = await call("POST", "/sandboxes/plain/fork", { body: { targetName: "keeper" }, key: plainCode });
    assert.equal(fork.status, 403, JSON.stringify(fork.body));
    const mounted = await inside("plain", "POST", "/drives/mount", { driveName: "vault", mountPath: "/v" }, plainCode);
    assert.match(mounted.text, /access denied/);
  });

  test("are passed on by code that has them", async () => {
    const made = await post("/sandboxes", "heir", {}, { team: "readers" }, readingCode);
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const wish = { driveName: "vault", mountPath: "/v", drivePath: "/" };
    assert.match((await inside("heir", "POST", "/drives/mount", wish, readingCode)).text, /may use \/pub/);
  });

  test("are set by admins, and so are the permissions", async () => {
    for (const key of [member, robot])
      for (const path of ["/sandboxes", "/agents", "/functions", "/applications", "/jobs"]) {
        const { status, body } = await post(path, "mine", {}, { team: "owners" }, key);
        assert.equal(status, 403, `${path} ${JSON.stringify(body)}`);
        assert.match(body.message ?? "", /Only an admin sets labels/);
      }
    assert.equal((await post("/sandboxes", "labelled", {}, { color: "red" }, member)).status, 200);
    assert.equal((await post("/sandboxes", "owner", {}, { team: "owners" })).status, 200);
    const drive = (await call("GET", "/drives/vault")).body;
    const put = (permissions: object | undefined, key?: string) =>
      call("PUT", "/drives/vault", { body: { ...drive, spec: { ...drive.spec, permissions } }, ...keyed(key) });
    assert.equal((await put([], member)).status, 403);
    assert.equal((await put(undefined, member)).status, 400);
    assert.equal((await put([{ labels: { color: "red" } }], member)).status, 403);
    assert.equal((await put(drive.spec.permissions, member)).status, 200, "what was read may be written back");
    assert.equal((await put(drive.spec.permissions)).status, 200);
  });
});

describe("a sandbox that an admin keeps to admins", () => {
  const ADMIN = "test-admin-key-0123456789";
  const others = () => [member, robot, plainCode];
  const kept = { access: { roles: ["admin"] } };
  const preview = { port: 443, public: false };

  before(async () => {
    for (const name of ["safe", "later"]) assert.equal((await post("/sandboxes", name, {})).status, 200);
    const made = await call("PUT", "/sandboxes/safe", { body: { metadata: { name: "safe" }, spec: kept } });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    assert.deepEqual(made.body.spec.access.roles, ["admin"]);
  });

  test("is entered by nobody else: not at its address, its ports or its tools", async () => {
    for (const key of others())
      for (const [method, path] of [
        ["GET", "/filesystem/tree//"],
        ["POST", "/process"],
        ["GET", "/port/3000/x"],
        ["POST", "/mcp"],
        ["POST", "/drives/mount"],
        ["GET", "/drives/mount"],
      ] as const) {
        const { status, text } = await inside("safe", method, path, method === "POST" ? {} : undefined, key);
        assert.equal(status, 403, `${path} ${text}`);
      }
    assert.equal((await inside("safe", "GET", "/filesystem/tree//", undefined, ADMIN)).status, 200);
    assert.equal((await inside("later", "GET", "/filesystem/tree//", undefined, member)).status, 200);
  });

  test("is not changed, copied, shown or reached through anything below it", async () => {
    const below = "/sandboxes/safe";
    assert.equal(
      (await call("POST", `${below}/previews`, { body: { metadata: { name: "p" }, spec: preview } })).status,
      200,
    );
    assert.equal(
      (await call("POST", `${below}/previews/p/tokens`, { body: { metadata: { name: "t" }, spec: {} } })).status,
      200,
    );
    const attempts: [string, string, unknown?][] = [
      ["PUT", below, { metadata: { name: "safe" }, spec: {} }],
      ["PUT", below, { metadata: { name: "safe" }, spec: { access: { roles: ["member"] } } }],
      ["DELETE", below],
      ["POST", `${below}/fork`, { targetName: "copy" }],
      ["GET", `${below}/previews`],
      ["POST", `${below}/previews`, { metadata: { name: "mine" }, spec: { port: 443, public: true } }],
      ["GET", `${below}/previews/p/tokens`],
      ["POST", `${below}/previews/p/tokens`, { metadata: { name: "mine" }, spec: {} }],
      ["GET", `${below}/schedules`],
      ["POST", `${below}/schedules`, { name: "s", type: "cron", value: "* * * * *", input: { command: "env" } }],
      ["GET", `${below}/snapshots`],
      ["GET", "/observability/logs?resourceType=sandboxes&workloadIds=safe"],
    ];
    for (const [method, path, body] of attempts) {
      const answer = await call(method, path, { key: member, ...(body === undefined ? {} : { body }) });
      assert.equal(answer.status, 403, `${method} ${path} ${JSON.stringify(answer.body)}`);
    }
    const logs = await call("GET", "/observability/logs?resourceType=sandboxes", { key: member });
    assert.ok(!Object.hasOwn(logs.body, "safe"));
    assert.equal((await call("GET", below, { key: member })).status, 200, "that it is there is no secret");
  });

  test("closes what was opened before it was kept", async () => {
    const below = "/sandboxes/later";
    const key = member;
    const open = (name: string, spec: object) =>
      call("POST", `${below}/previews`, { key, body: { metadata: { name }, spec } });
    const shown = (await open("shown", { port: 443, public: true })).body;
    const hidden = (await open("hidden", preview)).body;
    const token = await call("POST", `${below}/previews/hidden/tokens`, {
      key,
      body: { metadata: { name: "t" }, spec: {} },
    });
    const visit = async (address: string, value?: string) =>
      (await fetch(address, { headers: value === undefined ? {} : { "x-service-preview-token": value } })).status;
    assert.equal(await visit(shown.spec.url), 200);
    assert.equal(await visit(hidden.spec.url, token.body.spec.token), 200);
    const stamped = Date.now();
    while (Date.now() <= stamped) await new Promise((resolve) => setImmediate(resolve));
    const put = await call("PUT", below, { body: { metadata: { name: "later" }, spec: kept } });
    assert.equal(put.status, 200, JSON.stringify(put.body));
    assert.equal(await visit(shown.spec.url), 404);
    assert.equal(await visit(hidden.spec.url, token.body.spec.token), 404);
    const mine = (await call("PUT", `${below}/previews/hidden`, { body: hidden })).body;
    assert.equal(await visit(mine.spec.url, token.body.spec.token), 401, "the old token opens nothing");
    const fresh = await call("POST", `${below}/previews/hidden/tokens`, {
      body: { metadata: { name: "t2" }, spec: {} },
    });
    assert.equal(await visit(mine.spec.url, fresh.body.spec.token), 200);
    const again = await call("PUT", below, { body: put.body });
    assert.deepEqual(again.body.spec.access, put.body.spec.access, "writing it back keeps the moment");
  });

  test("is kept by admins only", async () => {
    for (const key of others())
      assert.equal((await post("/sandboxes", "own", kept, undefined, key)).status, 403, "nobody shuts others out");
    const made = await post("/sandboxes", "shared", { access: { roles: ["member"] } });
    assert.equal(made.status, 200);
    assert.equal((await inside("shared", "GET", "/filesystem/tree//", undefined, member)).status, 200);
    const wrong = await post("/sandboxes", "wrong", { access: { roles: ["owner"] } });
    assert.equal(wrong.status, 400);
    const opened = await call("PUT", "/sandboxes/safe", { body: { metadata: { name: "safe" }, spec: {} } });
    assert.equal(opened.status, 200);
    assert.equal((await inside("safe", "GET", "/filesystem/tree//", undefined, member)).status, 200);
  });
});

describe("the role admin", () => {
  test("is given by no key that has some scopes only, and a token claims what its account may do", async () => {
    const { store } = platform.app;
    const { accountId } = (await store.workspaces.get("main")) ?? assert.fail();
    const scopes = ["workspaces:update", "workspaces:invite"];
    const { key } = await makeUser(store, accountId, "member", { main: "admin" }, scopes);
    const { sub } = await makeUser(store, accountId, "member", { main: "member" });
    const machine = (await call("POST", "/service_accounts", { body: { name: "plain" } })).body;
    const group = { groupName: "mine", role: "admin" };
    const attempts: [string, string, object][] = [
      ["POST", "/users", { email: "new@example.test", role: "admin" }],
      ["PUT", `/users/${sub}`, { role: "admin" }],
      ["PUT", `/service_accounts/${machine.client_id}`, { role: "admin" }],
      ["PUT", "/workspaces/main", { groupMappings: [group] }],
    ];
    for (const [method, path, body] of attempts) {
      const answer = await call(method, path, { key, body });
      assert.equal(answer.status, 403, `${method} ${path} ${JSON.stringify(answer.body)}`);
      assert.match(answer.body.message ?? "", /all scopes/);
    }
    assert.equal((await call("POST", "/users", { key, body: { email: "new@example.test" } })).status, 200);
    assert.equal((await call("PUT", "/users/new@example.test", { key, body: { role: "admin" } })).status, 403);
    assert.equal((await call("PUT", `/users/${sub}`, { key, body: { role: "member" } })).status, 200);
    assert.equal((await call("PUT", "/workspaces/main", { body: { groupMappings: [group] } })).status, 200);
    const again = { groupMappings: [group, { groupName: "all", role: "member" }] };
    assert.equal((await call("PUT", "/workspaces/main", { key, body: again })).status, 200);
    const heir = (await call("POST", "/service_accounts", { key, body: { name: "heir", role: "admin" } })).body;

    const token = async ({ client_id: id, client_secret: secret }: Answer["body"], scope?: string) => {
      const fields = { ...GRANT, ...(scope ? { scope } : {}) };
      const { body } = await askToken(platform.url, fields, {
        authorization: basic({ id: id ?? "", secret: secret ?? "" }),
      });
      const claimed = body.access_token === undefined ? body.error : decodeJwt(body.access_token).scope;
      assert.equal(body.error ?? body.scope, claimed, "the answer says the same");
      return claimed;
    };
    assert.equal(await token(heir), scopes.join(" "));
    assert.equal(await token(heir, "admin"), scopes.join(" "));
    assert.equal(await token(heir, "drives:list"), "invalid_scope");
    const claimed = new Set(String(await token(machine)).split(" "));
    assert.ok(claimed.has("drives:create"));
    for (const scope of ["admin", ...scopes, "integrations:create"]) assert.ok(!claimed.has(scope), scope);
    assert.equal(await token(machine, "workspaces:update"), "invalid_scope");
    const chief = (await call("POST", "/service_accounts", { body: { name: "chief", role: "admin" } })).body;
    assert.equal(await token(chief), "admin");
  });
});

describe("a token for a drive", () => {
  const opened = async (drive: string, key?: string) => {
    const { status, body } = await call("POST", `/drives/${drive}/access-token`, keyed(key));
    if (status !== 200) return status;
    const { mode, path } = decodeJwt(body.access_token);
    return `${mode} ${path}`;
  };

  test("gives what the permissions and the scopes of its caller give, and no more", async () => {
    const { store } = platform.app;
    const { accountId } = (await store.workspaces.get("main")) ?? assert.fail();
    const reader = (await makeUser(store, accountId, "member", { main: "admin" }, ["drives:get"])).key;
    const permissions = [{ labels: { team: "owners" } }, { mode: "read", path: "/pub" }];
    assert.equal((await post("/drives", "partly", { permissions })).status, 200);
    assert.equal(await opened("vault"), "read-write /");
    for (const key of [member, robot, plainCode]) {
      assert.equal(await opened("vault", key), 403);
      assert.equal(await opened("partly", key), "read /pub");
      assert.equal(await opened("open", key), "read-write /");
    }
    for (const drive of ["vault", "open"]) assert.equal(await opened(drive, reader), "read /");
    assert.equal(await opened("vault", readingCode), "read /pub");
  });

  test("does not live longer than the key that asked for it", async () => {
    const { apiKey: key } = (await call("POST", "/api_keys", { body: { expires_in: "10m" } })).body;
    const { body } = await call("POST", "/drives/open/access-token", { key });
    const { iat = 0, exp = 0 } = decodeJwt(body.access_token);
    assert.ok(exp - iat <= 600 && body.expires_in === exp - iat, JSON.stringify(body));
  });
});
