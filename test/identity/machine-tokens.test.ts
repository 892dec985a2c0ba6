/** Tokens of service accounts: how they are asked for, what they are worth, and what is no token. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  importPKCS8,
  type JSONWebKeySet,
  jwtVerify,
  SignJWT,
} from "jose";
import { generateSigningPair, SIGNING_PURPOSE } from "../../src/auth/oauth/access-tokens.ts";
import { type Clock, DAY_MS, HOUR_MS } from "../../src/lib/clock.ts";
import { onEachDatabase, type Suite } from "../each-platform.ts";

let skewMs = 0;
const clock: Clock = { now: () => Date.now() + skewMs };

interface Machine {
  id: string;
  secret: string;
}

async function makeMachine({ call }: Suite): Promise<Machine> {
  const made = await call("POST", "/service_accounts", { workspace: "main", body: { name: "robot" } });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  return { id: made.body.client_id, secret: made.body.client_secret };
}

const basic = ({ id, secret }: Machine): string => `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`;

async function ask(url: string, fields: Record<string, unknown>, headers: Record<string, string> = {}, form = false) {
  const response = await fetch(`${url}/oauth/token`, {
    method: "POST",
    headers: { "content-type": form ? "application/x-www-form-urlencoded" : "application/json", ...headers },
    body: form ? new URLSearchParams(fields as Record<string, string>).toString() : JSON.stringify(fields),
  });
  return {
    status: response.status,
    body: (await response.json()) as Record<string, string>,
    headers: response.headers,
  };
}

const read = async (url: string) => (await (await fetch(url)).json()) as Record<string, string>;

const GRANT = { grant_type: "client_credentials" };

await onEachDatabase(
  "machine tokens",
  (suite) => {
    const tokenOf = async (machine: Machine, scope?: string): Promise<string> => {
      const { status, body } = await ask(
        suite.url(),
        { ...GRANT, ...(scope ? { scope } : {}) },
        {
          authorization: basic(machine),
        },
      );
      assert.equal(status, 200, JSON.stringify(body));
      return body.access_token ?? "";
    };

    test("are given for JSON and forms, Basic and body credentials, at both addresses", async () => {
      const machine = await makeMachine(suite);
      const inBody = { ...GRANT, client_id: machine.id, client_secret: machine.secret };
      for (const base of [suite.url(), `${suite.url()}/v0`])
        for (const form of [false, true])
          for (const [fields, headers] of [
            [GRANT, { authorization: basic(machine) }],
            [inBody, {}],
          ] as const) {
            const {
              status,
              body,
              headers: answered,
            } = await ask(base, fields, headers as Record<string, string>, form);
            assert.equal(status, 200, JSON.stringify(body));
            assert.equal(body.token_type, "Bearer");
            assert.equal(body.expires_in, 7200);
            assert.match(answered.get("cache-control") ?? "", /no-store/);
            const called = await suite.call("GET", "/drives", { key: body.access_token ?? "" });
            assert.equal(called.status, 200, JSON.stringify(called.body));
          }
    });

    test("say who they are for, and can be checked with the published keys alone", async () => {
      const machine = await makeMachine(suite);
      const token = await tokenOf(machine, "drives:list drives:get");
      const discovery = await read(`${suite.url()}/v0/.well-known/openid-configuration`);
      assert.equal(discovery.issuer, suite.url());
      assert.equal(discovery.token_endpoint, `${suite.url()}/oauth/token`);
      const keys = (await (await fetch(discovery.jwks_uri ?? "")).json()) as JSONWebKeySet;
      assert.ok(keys.keys.every((key) => !("d" in key)));
      const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
        issuer: suite.url(),
        audience: suite.url(),
        currentDate: new Date(clock.now()),
      });
      assert.equal(payload.sub, machine.id);
      assert.equal(payload.scope, "drives:list drives:get");
      assert.equal(payload.workspace, "main");
      assert.equal((payload.exp ?? 0) - (payload.iat ?? 0), 7200);
      assert.ok(payload.jti && payload.account);
    });

    test("carry no more than was asked for, and nothing unknown is granted", async () => {
      const machine = await makeMachine(suite);
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
      const key = await tokenOf(await makeMachine(suite), "admin");
      assert.equal((await suite.call("POST", "/service_accounts", { key, body: { name: "more" } })).status, 403);
    });

    test("of an account with scopes of its own stay within them", async () => {
      const { account, secret } = await suite.store().keys.createServiceAccount({
        workspace: "main",
        name: "narrow",
        description: "",
        role: "member",
        createdBy: "test",
        scopes: ["drives:list"],
      });
      const machine = { id: account.client_id, secret };
      const key = await tokenOf(machine);
      assert.equal((await suite.call("GET", "/drives", { key })).status, 200);
      assert.equal((await suite.call("GET", "/volumes", { key })).status, 403);
      const wide = await ask(suite.url(), { ...GRANT, scope: "volumes:list" }, { authorization: basic(machine) });
      assert.equal(wide.status, 400);
      assert.equal(wide.body.error, "invalid_scope");
    });

    test("are refused in the words of the standard", async () => {
      const machine = await makeMachine(suite);
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

    test("stop at once when their owner is deleted, and after two hours", async () => {
      const machine = await makeMachine(suite);
      const key = await tokenOf(machine);
      assert.equal((await suite.call("GET", "/drives", { key })).status, 200);
      skewMs = 2 * HOUR_MS + 1000;
      assert.equal((await suite.call("GET", "/drives", { key })).status, 401);
      skewMs = 0;
      assert.equal((await suite.call("GET", "/drives", { key })).status, 200);
      assert.equal((await suite.call("DELETE", `/service_accounts/${machine.id}`)).status, 200);
      assert.equal((await suite.call("GET", "/drives", { key })).status, 401);
    });

    test("work only in their workspace, whatever is asked for", async () => {
      const key = await tokenOf(await makeMachine(suite));
      const other = await suite.call("POST", "/workspaces", { body: { name: `other-${Date.now()}` } });
      assert.equal(other.status, 200);
      assert.equal((await suite.call("GET", "/drives", { key, workspace: other.body.name })).status, 403);
    });

    test("that are forged are worth nothing", async () => {
      const machine = await makeMachine(suite);
      const token = await tokenOf(machine);
      const [head = "", body = "", signature = ""] = token.split(".");
      const claims = decodeJwt(token);
      const { kid = "" } = decodeProtectedHeader(token);
      const own = await suite.store().signingKeys.current(SIGNING_PURPOSE, generateSigningPair);
      const ours = await importPKCS8(own.privateKey, "ES256");
      const theirs = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
      const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
      const sign = (changed: object, { typ = "at+jwt", key = ours as typeof ours | typeof theirs, id = kid } = {}) =>
        new SignJWT({ ...claims, ...changed }).setProtectedHeader({ alg: "ES256", kid: id, typ }).sign(key);
      assert.equal((await suite.call("GET", "/drives", { key: await sign({}) })).status, 200, "the control");
      const [jwk = ""] = await suite.store().signingKeys.publicKeys(SIGNING_PURPOSE);
      const confused = new SignJWT(claims)
        .setProtectedHeader({ alg: "HS256", kid, typ: "at+jwt" })
        .sign(new TextEncoder().encode(jwk));
      const forged: Record<string, string> = {
        "without a signature": `${encode({ alg: "none", kid, typ: "at+jwt" })}.${body}.`,
        "alg none, signature kept": `${encode({ alg: "none", kid, typ: "at+jwt" })}.${body}.${signature}`,
        "changed claims": `${head}.${encode({ ...claims, scope: "admin", sub: "somebody" })}.${signature}`,
        "another key under our id": await sign({}, { key: theirs }),
        "another key under its own id": await sign({}, { key: theirs, id: "mine" }),
        "the public key as a shared secret": await confused,
        "another issuer": await sign({ iss: "https://example.com" }),
        "another audience": await sign({ aud: "https://example.com" }),
        "another sort of token": await sign({}, { typ: "JWT" }),
        "no end": await sign({ exp: undefined }),
        "a subject that is not there": await sign({ sub: "0190aaaa-0000-7000-8000-000000000000" }),
        "a person without consent": await sign({ sub_type: "user", sub: "admin@berth.local" }),
      };
      for (const [what, key] of Object.entries(forged))
        assert.equal((await suite.call("GET", "/drives", { key })).status, 401, what);
    });

    test("outlive the replacement of the key that signed them", async () => {
      const machine = await makeMachine(suite);
      const before = await tokenOf(machine);
      skewMs = 91 * DAY_MS;
      const after = await tokenOf(machine);
      assert.notEqual(decodeProtectedHeader(after).kid, decodeProtectedHeader(before).kid);
      const { keys } = (await (await fetch(`${suite.url()}/oauth/jwks`)).json()) as JSONWebKeySet;
      const kids = keys.map((key) => key.kid);
      assert.ok(kids.includes(decodeProtectedHeader(before).kid) && kids.includes(decodeProtectedHeader(after).kid));
      skewMs = 0;
      for (const key of [before, after]) assert.equal((await suite.call("GET", "/drives", { key })).status, 200);
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
  },
  { clock },
);
