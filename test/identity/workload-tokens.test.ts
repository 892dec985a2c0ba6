/** Tokens by which a workload proves to others who it is, checked as a cloud or a vault checks them. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { createIdentityTokens } from "../../src/kinds/workload/identity-token.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const AUDIENCE = "https://vault.test/v1";

let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform();
});
after(() => platform.stop());

test("a verifier that knows the issuer alone accepts the token for its audience, and the platform does not", async () => {
  const { store, url: issuer } = platform.app;
  const clock = { now: () => Date.now() };
  const tokenFor = createIdentityTokens({ store, clock, issuer: () => issuer });
  const owner = { uid: "u-1", workspace: "main", kind: "sandbox", name: "buyer" };
  const token = await tokenFor(owner, AUDIENCE);
  assert.equal(await tokenFor(owner, AUDIENCE), token, "used again while it lasts");

  const described = await fetch(`${issuer}/.well-known/openid-configuration`);
  const { jwks_uri, issuer: named } = (await described.json()) as { jwks_uri: string; issuer: string };
  assert.equal(named, issuer);
  const keys = createRemoteJWKSet(new URL(jwks_uri));
  const { payload, protectedHeader } = await jwtVerify(token, keys, { issuer, audience: AUDIENCE });
  const { iat = 0, exp = 0, jti, ...claims } = payload;
  assert.deepEqual(claims, {
    iss: issuer,
    aud: AUDIENCE,
    sub: "workspace:main:sandbox:buyer",
    workspace: "main",
    workload_kind: "sandbox",
    workload_name: "buyer",
    workload_uid: "u-1",
  });
  assert.equal(exp - iat, 600);
  assert.ok(jti);
  assert.equal(protectedHeader.alg, "ES256");
  await assert.rejects(jwtVerify(token, keys, { issuer, audience: "https://other.test" }), /aud/);

  assert.equal((await platform.call("GET", "/sandboxes", { key: token })).status, 401);
  for (const audience of [issuer, `${issuer}/`]) await assert.rejects(tokenFor(owner, audience), /access token/);
  assert.notEqual(await tokenFor({ ...owner, uid: "u-2" }, AUDIENCE), token);
});
