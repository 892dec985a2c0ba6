/** What somebody with credentials of their own may try on other people's things, and on their own rights. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { sql } from "kysely";
import type { Operation } from "../../src/contract/operation.ts";
import { OPERATIONS } from "../../src/kinds/index.ts";
import { type Identity, makeAccount, makeServiceAccount, makeUser } from "../identities.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";

/** They make something of one's own under any name that is free there. */
const MAKES = new Set(["imageLoad"]);
const PASSWORD = "correct horse battery";

describe("attacks", () => {
  let platform: TestPlatform;
  let accountId = "";
  let mallory: Identity;
  const call: TestPlatform["call"] = (method, path, options = {}) =>
    platform.call(method, path, { workspace: "main", ...options });

  before(async () => {
    platform = await startTestPlatform();
    const { store } = platform.app;
    accountId = (await call("GET", "/accounts")).body[0].id;
    const { id } = await makeAccount(store, "theirs");
    mallory = await makeUser(store, id, "admin", { theirs: "admin" });
  });
  after(() => platform.stop());

  /** The answer to a request that no client library would send. */
  const raw = async (
    path: string,
    headers: readonly string[],
  ): Promise<{ status: number; text: string; head: string }> => {
    const { port } = new URL(platform.url);
    const socket = connect(Number(port), "127.0.0.1");
    socket.write([`GET ${path} HTTP/1.1`, "Connection: close", ...headers, "", ""].join("\r\n"));
    const answer = await text(socket);
    const [head = "", body = ""] = answer.split("\r\n\r\n", 2);
    return { status: Number(answer.split(" ")[1]), text: body, head };
  };

  test("the workspace is chosen once, and the same for the guard and for the work", async () => {
    await call("POST", "/drives", { body: { metadata: { name: "ours" }, spec: {} } });
    const host = `Host: ${new URL(platform.url).host}`;
    const theirs = `Authorization: Bearer ${mallory.key}`;
    const named = (...names: string[]) => names.map((name) => `X-Service-Workspace: ${name}`);
    const attempts: [string, string[]][] = [
      ["/v0/drives/ours", named("theirs", "main")],
      ["/v0/drives/ours", named("main", "theirs")],
      ["/v0/drives/ours", named("theirs, main")],
      ["/v0/drives/ours?workspace=main", named("theirs")],
      ["/v0/drives/ours?workspace=theirs", named("main")],
      ["/v0/drives/ours?workspace=theirs&workspace=main", []],
      ["/v0/drives/ours?workspace[]=main", named("theirs")],
      ["/v0/drives/ours", named("MAIN")],
      ["/v0/drives/ours", named("main\t")],
      ["/v0/drives/..%2f..%2fmain%2fdrives%2fours", named("theirs")],
      ["/theirs/../v0/drives/ours?workspace=main", named("theirs")],
    ];
    for (const [path, headers] of attempts) {
      const { status, text: body } = await raw(path, [host, theirs, ...headers]);
      assert.ok(status >= 400 && status < 500, `${path} ${headers}: ${status}`);
      assert.ok(!body.includes('"uid"'), `${path} ${headers}`);
    }
    const robot = await makeServiceAccount(platform.app.store, "theirs", "admin");
    const key = [host, `Authorization: Bearer ${robot.key}`];
    for (const chosen of [named("main"), ["X-Service-Workspace:"], []])
      assert.notEqual((await raw("/v0/drives/ours", [...key, ...chosen])).status, 200, "a key stays in its workspace");
    assert.equal((await raw("/v0/drives/ours?workspace=main", key)).status, 403);
    const two = [host, "X-Service-Workspace: main"];
    for (const bearers of [
      [`X-Service-Authorization: Bearer ${mallory.key}`, `X-Service-Authorization: Bearer ${TEST_KEY}`],
      [`X-Service-Authorization: Bearer ${mallory.key}`, `Authorization: Bearer ${TEST_KEY}`],
      [`Authorization: Bearer ${mallory.key}, Bearer ${TEST_KEY}`],
    ])
      assert.ok([401, 403].includes((await raw("/v0/drives/ours", [...two, ...bearers])).status), bearers.join());
  });

  test("another tenant's names and uids open nothing", async () => {
    const made = [
      ["/agents", "secret-agent", {}],
      ["/drives", "secret-drive", {}],
      ["/functions", "secret-function", {}],
      ["/jobs", "secret-job", { runtime: { image: "fake/base-image:latest" } }],
      ["/models", "secret-model", {}],
      ["/policies", "secret-policy", { type: "location", locations: [{ type: "location", name: "local" }] }],
      ["/sandboxes", "secret-sandbox", {}],
      ["/volumes", "secret-volume", {}],
      ["/vpcs", "secret-vpc", {}],
    ] as const;
    const words = new Map<string, string[]>();
    for (const [path, name, spec] of made) {
      const { status, body } = await call("POST", path, {
        body: { metadata: { name, externalId: `ext-${name}` }, spec },
      });
      assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
      words.set(path, [name, body.metadata.uid ?? name, `ext-${name}`]);
    }
    const robot = (await call("POST", "/service_accounts", { body: { name: "secret-robot" } })).body;
    const key = (await call("POST", `/service_accounts/${robot.client_id}/api_keys`, { body: {} })).body;
    const own = (await call("GET", "/api_keys")).body[0];
    const person = await makeUser(platform.app.store, accountId, "member", { main: "member" });
    const invited = (await call("POST", "/users", { body: { email: "secret@example.test" } })).body;
    const ids = [robot.client_id, key.id, own.id, person.sub, invited.invitationId];

    const asks = OPERATIONS.filter(
      ({ id, tenancy, params }) => ["workspace", "caller"].includes(tenancy) && params.length > 0 && !MAKES.has(id),
    );
    assert.ok(asks.length > 80);
    await Promise.all(
      asks.flatMap((operation) => {
        const [collection = ""] = /^\/[^/]+/.exec(operation.path) ?? [];
        return (words.get(collection) ?? ids).map(async (word) => {
          const { status, body } = await tryWith(operation, word);
          assert.ok(status >= 400 && status < 500, `${operation.id} with ${word}: ${status}`);
          const said = JSON.stringify(body ?? "").replaceAll(word, "");
          assert.ok(!/secret-|"uid"/.test(said), `${operation.id} with ${word}: ${said}`);
        });
      }),
    );
    for (const [path, name] of made)
      assert.equal((await call("GET", `${path}/${name}`)).status, 200, "all still there");
    assert.equal((await call("GET", "/agents", { key: key.apiKey })).status, 200, "the key still works");
  });

  const tryWith = (operation: Operation, word: string) =>
    call(
      operation.method,
      operation.path.replace(/\{(\w+)\}/g, (_, name: string) => (name === operation.workspaceParam ? "main" : word)),
      {
        key: mallory.key,
        ...(operation.workspaceParam ? {} : { workspace: "theirs" }),
        ...(operation.body ? { body: { metadata: {}, spec: {}, name: "x", role: "admin", tasks: [{}] } } : {}),
      },
    );

  test("what a client may not set, it does not set", async () => {
    const fake = "0190aaaa-0000-7000-8000-000000000000";
    const metadata = {
      name: "assigned",
      uid: fake,
      workspace: "theirs",
      createdBy: "mallory",
      updatedBy: "mallory",
      createdAt: "2001-01-01T00:00:00Z",
      url: "https://evil.example",
    };
    const sent = {
      metadata,
      spec: {},
      status: "DEPLOYED",
      state: { activeRevision: "9" },
      events: [{ type: "forged" }],
    };
    const made = (await call("POST", "/agents", { body: sent })).body;
    const put = (await call("PUT", "/agents/assigned", { body: sent })).body;
    for (const agent of [made, put]) {
      assert.notEqual(agent.metadata.uid, fake);
      assert.equal(agent.metadata.workspace, "main");
      assert.deepEqual(
        [agent.metadata.createdBy, agent.metadata.updatedBy],
        ["admin@berth.local", "admin@berth.local"],
      );
      assert.ok(Date.parse(agent.metadata.createdAt) > Date.parse("2020-01-01"));
      assert.ok(agent.metadata.url.startsWith(platform.url));
      assert.notEqual(agent.status, "DEPLOYED");
      assert.ok(!JSON.stringify(agent.events ?? []).includes("forged"));
    }
    const robot = (
      await call("POST", "/service_accounts", {
        body: {
          name: "r",
          client_id: fake,
          client_secret: "chosen",
          workload: fake,
          scopes: ["admin"],
          workspace: "theirs",
        },
      })
    ).body;
    assert.notEqual(robot.client_id, fake);
    assert.notEqual(robot.client_secret, "chosen");
    for (const body of [{ apiKey: "chosen-key-of-mine" }, { sub: mallory.sub }])
      assert.equal((await call("POST", "/api_keys", { body: { name: "k", ...body } })).status, 400);
    assert.equal((await call("GET", "/agents", { key: "chosen-key-of-mine" })).status, 401);
    const workspace = (
      await call("POST", "/workspaces", { body: { name: "assigned", id: fake, status: "ready", createdBy: "mallory" } })
    ).body;
    assert.notEqual(workspace.id, fake);
    assert.equal(workspace.createdBy, "admin@berth.local");
    const foreign = (await call("GET", "/accounts", { key: mallory.key })).body[0].id;
    const moved = await call("PUT", "/workspaces/assigned", { body: { accountId: foreign } });
    assert.ok(moved.status >= 400 || moved.body.accountId === accountId, "a workspace stays in its account");
    const invited = (await call("POST", "/users", { body: { email: "x@example.test", accepted: true, sub: fake } }))
      .body;
    const listed = (await call("GET", "/users")).body.find((user: { email: string }) => user.email === invited.email);
    assert.deepEqual([listed.accepted, listed.sub], [false, undefined]);
  });

  test("nobody hands on more than they have", async () => {
    const { store } = platform.app;
    const weak = await makeUser(store, accountId, "admin", { main: "admin" }, ["apiKey:write", "workspaces:update"]);
    for (const scopes of [["admin"], ["agents:delete"]])
      assert.equal((await call("POST", "/api_keys", { key: weak.key, body: { scopes } })).status, 403);
    const { apiKey } = (await call("POST", "/api_keys", { key: weak.key, body: {} })).body;
    assert.equal(
      (await call("GET", "/agents", { key: apiKey, workspace: "main" })).status,
      403,
      "no scope asked = its own",
    );
    const robot = (await call("POST", "/service_accounts", { key: weak.key, workspace: "main", body: { name: "w" } }))
      .body;
    const path = `/service_accounts/${robot.client_id}/api_keys`;
    const second = (await call("POST", path, { key: weak.key, workspace: "main", body: {} })).body;
    assert.equal((await call("GET", "/agents", { key: second.apiKey })).status, 403);
    const member = await makeUser(store, accountId, "member", { main: "member" }, ["admin"]);
    const raised = await call("PUT", `/users/${member.sub}`, {
      key: member.key,
      workspace: "main",
      body: { role: "admin" },
    });
    assert.equal(raised.status, 403, "the scope admin is no role");
  });

  test("no address of ours leads anywhere else", async () => {
    const evil = "evil.example";
    const hosts = [`Host: ${evil}`, `X-Forwarded-Host: ${evil}`, "X-Forwarded-Proto: https", `Forwarded: host=${evil}`];
    for (const path of [
      "/v0/oauth/authorize?client_id=service&redirect_uri=https://evil.example/cb",
      "/v0/oauth/device?user_code=x",
      "/oauth/authorize?client_id=service&response_type=code&redirect_uri=https%3A%2F%2Fevil.example&state=x",
      "/oauth/external/corp?state=x&code=x&redirect=https://evil.example",
      "//evil.example/%2e%2e",
      "/.well-known/openid-configuration",
      "/.well-known/oauth-protected-resource",
    ]) {
      const { head, text: body } = await raw(path, hosts);
      const [, location = platform.url] = /\r\nlocation: ([^\r]+)/i.exec(head) ?? [];
      const own = [platform.url, platform.app.pagesUrl].some(
        (start) => location.startsWith(`${start}/`) || location === start,
      );
      assert.ok(own || location.startsWith("/"), `${path}: ${location}`);
      assert.ok(!location.startsWith("//"), location);
      if (path.startsWith("/.well-known")) assert.ok(!body.includes(evil), body);
    }
  });

  test("the database holds no secret in clear: a comparison has nothing to leak", async () => {
    const { store } = platform.app;
    const robot = (await call("POST", "/service_accounts", { body: { name: "stored" } })).body;
    const key = (await call("POST", "/api_keys", { body: {}, headers: { "idempotency-key": "once" } })).body;
    await call("PUT", "/users/me/password", { body: { newPassword: PASSWORD } });
    await call("POST", "/agents", {
      body: {
        metadata: { name: "hush" },
        spec: { runtime: { envs: [{ name: "A", value: "s3cr3t-value", secret: true }] } },
      },
    });
    const device = (await (
      await fetch(`${platform.url}/oauth/device/code`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"client_id":"service"}',
      })
    ).json()) as { device_code: string };
    const secrets = [TEST_KEY, robot.client_secret, key.apiKey, PASSWORD, "s3cr3t-value", device.device_code];
    assert.ok(secrets.every((secret) => typeof secret === "string" && secret.length > 8));
    const { rows } = await sql<{ name: string }>`SELECT name FROM sqlite_master WHERE type = 'table'`.execute(
      store.database.read,
    );
    let looked = 0;
    for (const { name } of rows.filter((row) => !row.name.startsWith("resource_grams"))) {
      const content = JSON.stringify((await sql`SELECT * FROM ${sql.table(name)}`.execute(store.database.read)).rows);
      looked += content.length;
      for (const secret of secrets) assert.ok(!content.includes(secret), `${name} holds a secret`);
    }
    assert.ok(looked > 10_000);
  });
});
