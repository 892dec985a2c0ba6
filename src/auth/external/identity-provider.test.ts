import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createOutbound } from "../../lib/network/outbound-http.ts";
import { systemClock } from "../../lib/time/clock.ts";
import { createIdentityProvider } from "./identity-provider.ts";

const challenge = { state: "s", nonce: "n", codeChallenge: "c", redirectUri: "http://127.0.0.1/cb" };

/** The address to which people are sent when a provider answers like this. */
async function leadsTo(answer: (issuer: string) => RequestListener): Promise<string> {
  let issuer = "";
  const server = createServer((request, response) => answer(issuer)(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const outbound = createOutbound({ privateAddresses: true });
  const provider = createIdentityProvider(
    {
      id: "x",
      name: "X",
      issuer,
      client_id: "berth",
      scopes: "openid",
      groups_claim: "groups",
      domains: [],
      create_users: true,
    },
    { clock: systemClock, outbound },
  );
  try {
    return await provider.authorizationUrl(challenge);
  } finally {
    await outbound.stop();
    server.closeAllConnections();
    server.close();
  }
}

const says =
  (more: object) =>
  (issuer: string): RequestListener =>
  (_request, response) => {
    response.end(
      JSON.stringify({
        issuer,
        authorization_endpoint: `${issuer}/auth?tenant=1`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: "https://keys.example/jwks",
        ...more,
      }),
    );
  };

test("people are sent to what the provider names, with everything that ties the answer to the question", async () => {
  const url = new URL(await leadsTo(says({})));
  assert.deepEqual(Object.fromEntries(url.searchParams), {
    tenant: "1",
    response_type: "code",
    client_id: "berth",
    redirect_uri: challenge.redirectUri,
    scope: "openid",
    state: "s",
    nonce: "n",
    code_challenge: "c",
    code_challenge_method: "S256",
  });
});

test("a provider that is not who it should be, or leads elsewhere without TLS, is not used", async () => {
  await assert.rejects(leadsTo(says({ issuer: "https://evil.example" })), /calls itself/);
  for (const address of ["http://169.254.169.254/token", "http://10.0.0.1/", "file:///etc/passwd", "", 7])
    await assert.rejects(leadsTo(says({ token_endpoint: address })), /token_endpoint is not safe/, String(address));
  await assert.rejects(leadsTo(says({ jwks_uri: undefined })), /jwks_uri is not safe/);
});

test("what answers with a redirect, too much, or nonsense is not believed", async () => {
  const away: RequestListener = (_request, response) => {
    response.writeHead(302, { location: "https://evil.example/" }).end();
  };
  await assert.rejects(
    leadsTo(() => away),
    /answered 302/,
  );
  await assert.rejects(leadsTo(says({ padding: "x".repeat(2 ** 20) })), /longer than/);
  for (const text of ["", "[]", "<html>", "null"])
    await assert.rejects(
      leadsTo(() => (_request, response) => void response.end(text)),
      /answered 200/,
    );
});
