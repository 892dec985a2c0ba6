/** What of machine tokens needs another clock or the store itself; and all of it on PostgreSQL (SQLite: test/installed). */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { decodeJwt, decodeProtectedHeader, importPKCS8, type JSONWebKeySet, SignJWT } from "jose";
import { generateSigningPair, SIGNING_PURPOSE } from "../../src/auth/oauth/access-tokens.ts";
import { type Clock, DAY_MS, HOUR_MS } from "../../src/lib/time/clock.ts";
import { onEachDatabase } from "../each-platform.ts";
import { askToken as ask, basic, type Credentials, GRANT, machineToken } from "./machine.ts";
import { machineTokens } from "./machine-suite.ts";
import { makeRobot } from "./people.ts";

let skewMs = 0;
const clock: Clock = { now: () => Date.now() + skewMs };

await onEachDatabase("machine tokens", machineTokens, { on: "postgres" });

await onEachDatabase(
  "machine tokens, later and forged,",
  (suite) => {
    const tokenOf = (machine: Credentials): Promise<string> => machineToken(suite.url(), machine);

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

    test("stop after two hours", async () => {
      const machine = await makeRobot(suite);
      const key = await tokenOf(machine);
      assert.equal((await suite.call("GET", "/drives", { key })).status, 200);
      skewMs = 2 * HOUR_MS + 1000;
      assert.equal((await suite.call("GET", "/drives", { key })).status, 401);
      skewMs = 0;
      assert.equal((await suite.call("GET", "/drives", { key })).status, 200);
    });

    test("that are forged are worth nothing", async () => {
      const machine = await makeRobot(suite);
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
      const machine = await makeRobot(suite);
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
  },
  { clock },
);
