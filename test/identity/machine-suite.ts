/** Tokens of service accounts: how they are asked for, what they are worth, and what is no token. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import type { ApiSuite } from "../each-platform.ts";
import { askToken as ask, basic, GRANT, machineToken } from "./machine.ts";
import { makeRobot, type Robot } from "./people.ts";

const read = async (url: string) => (await (await fetch(url)).json()) as Record<string, string>;

export function machineTokens(suite: ApiSuite, now: () => number = Date.now): void {
  const tokenOf = (machine: Robot, scope?: string): Promise<string> => machineToken(suite.url(), machine, scope);

  test("are given for JSON and forms, Basic and body credentials, at both addresses", async () => {
    const machine = await makeRobot(suite);
    const inBody = { ...GRANT, client_id: machine.id, client_secret: machine.secret };
    for (const base of [suite.url(), `${suite.url()}/v0`])
      for (const form of [false, true])
        for (const [fields, headers] of [
          [GRANT, { authorization: basic(machine) }],
          [inBody, {}],
        ] as const) {
          const { status, body, headers: answered } = await ask(base, fields, headers as Record<string, string>, form);
          assert.equal(status, 200, JSON.stringify(body));
          assert.equal(body.token_type, "Bearer");
          assert.equal(body.expires_in, 7200);
          assert.match(answered.get("cache-control") ?? "", /no-store/);
          const called = await suite.call("GET", "/drives", { key: body.access_token ?? "" });
          assert.equal(called.status, 200, JSON.stringify(called.body));
        }
  });

  test("say who they are for, and can be checked with the published keys alone", async () => {
    const machine = await makeRobot(suite);
    const token = await tokenOf(machine, "drives:list drives:get");
    const discovery = await read(`${suite.url()}/v0/.well-known/openid-configuration`);
    assert.equal(discovery.issuer, suite.url());
    assert.equal(discovery.token_endpoint, `${suite.url()}/oauth/token`);
    const keys = (await (await fetch(discovery.jwks_uri ?? "")).json()) as JSONWebKeySet;
    assert.ok(keys.keys.every((key) => !("d" in key)));
    const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
      issuer: suite.url(),
      audience: suite.url(),
      currentDate: new Date(now()),
    });
    assert.equal(payload.sub, machine.id);
    assert.equal(payload.scope, "drives:list drives:get");
    assert.equal(payload.workspace, "main");
    assert.equal((payload.exp ?? 0) - (payload.iat ?? 0), 7200);
    assert.ok(payload.jti && payload.account);
  });

  test("carry no more than was asked for, and nothing unknown is granted", async () => {
    const machine = await makeRobot(suite);
    const key = await tokenOf(machine, "drives:list");
    assert.equal((await suite.call("GET", "/drives", { key })).status, 200);
    assert.equal((await suite.call("GET", "/volumes", { key })).status, 403);
    for (const scope of ["drives:list made:up", "root", "x".repeat(9000)]) {
      const { status, body } = await ask(suite.url(), { ...GRANT, scope }, { authorization: basic(machine) });
      assert.equal(status, 400);
      assert.equal(body.error, "invalid_scope");
      assert.equal(typeof body.error_description, "string");
    }
  });

  test("never raise a role, not even with the scope admin", async () => {
    const key = await tokenOf(await makeRobot(suite), "admin");
    assert.equal((await suite.call("POST", "/service_accounts", { key, body: { name: "more" } })).status, 403);
  });

  test("are refused in the words of the standard", async () => {
    const machine = await makeRobot(suite);
    const url = suite.url();
    const wrong = { ...machine, secret: "wrong" };
    const cases = [
      [401, "invalid_client", GRANT, { authorization: basic(wrong) }],
      [401, "invalid_client", GRANT, { authorization: basic({ id: "nobody", secret: "x" }) }],
      [400, "invalid_request", GRANT, {}],
      [400, "invalid_request", {}, { authorization: basic(machine) }],
      [400, "unsupported_grant_type", { grant_type: "password" }, { authorization: basic(machine) }],
      [400, "invalid_request", { ...GRANT, scope: ["drives:list"] }, { authorization: basic(machine) }],
      [400, "invalid_target", { ...GRANT, resource: "https://example.com" }, { authorization: basic(machine) }],
    ] as const;
    for (const [status, error, fields, headers] of cases) {
      const answer = await ask(url, fields, headers as Record<string, string>);
      assert.equal(answer.body.error, error, JSON.stringify(answer.body));
      assert.equal(answer.status, status);
    }
    for (const body of ["[1]", "{", `{"a":"${"x".repeat(40_000)}"}`, '{"__proto__":{}}']) {
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${url}/oauth/token`, { method: "POST", headers, body });
      assert.ok([400, 413].includes(response.status));
      assert.equal(((await response.json()) as { error: string }).error, "invalid_request");
    }
  });

  test("work only in their workspace, whatever is asked for", async () => {
    const key = await tokenOf(await makeRobot(suite));
    const other = await suite.call("POST", "/workspaces", { body: { name: `other-${Date.now()}` } });
    assert.equal(other.status, 200);
    assert.equal((await suite.call("GET", "/drives", { key, workspace: other.body.name })).status, 403);
  });

  test("are found by a client that was refused", async () => {
    const { headers } = await suite.call("GET", "/drives", { key: null });
    const [, address = ""] = /resource_metadata="([^"]+)"/.exec(headers.get("www-authenticate") ?? "") ?? [];
    const metadata = (await (await fetch(address)).json()) as { authorization_servers: string[]; resource: string };
    assert.deepEqual(metadata.authorization_servers, [suite.url()]);
    assert.equal(metadata.resource, suite.url());
    const below = await read(`${address}/main/functions/tool`);
    assert.equal(below.resource, `${suite.url()}/main/functions/tool`);
    const server = await fetch(`${suite.url()}/.well-known/oauth-authorization-server`);
    assert.equal(((await server.json()) as { issuer: string }).issuer, suite.url());
  });
  test("stop at once when their owner is deleted", async () => {
    const machine = await makeRobot(suite);
    const key = await tokenOf(machine);
    assert.equal((await suite.call("GET", "/drives", { key })).status, 200);
    assert.equal((await suite.call("DELETE", `/service_accounts/${machine.id}`)).status, 200);
    assert.equal((await suite.call("GET", "/drives", { key })).status, 401);
  });
}
