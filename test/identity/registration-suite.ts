/** Programs that register themselves: an MCP client that has only an address, and what others make of the open door. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { before, test } from "node:test";
import { auth, type OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import type { OAuthClientInformationMixed, OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import type { ApiSuite } from "../each-platform.ts";
import { Browser, type Page } from "./browser.ts";
import { makeMember } from "./people.ts";
import { CALLBACK, type Person } from "./program.ts";

/** What such a program does, and the person who allows it something. */
export function selfRegistered(url: () => string, person: () => Person) {
  return {
    async register(body: object): Promise<{ status: number; body: Record<string, string> }> {
      const response = await fetch(`${url()}/oauth/register`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return { status: response.status, body: (await response.json()) as Record<string, string> };
    },
    authorize: (clientId: string, more: Record<string, string> = {}): string =>
      `/oauth/authorize?${new URLSearchParams({
        client_id: clientId,
        response_type: "code",
        redirect_uri: CALLBACK,
        code_challenge: createHash("sha256").update(randomBytes(32)).digest("base64url"),
        code_challenge_method: "S256",
        ...more,
      })}`,
    async consentTo(browser: Browser, address: string): Promise<Page> {
      const { email, password } = person();
      return browser.submit(await browser.visit(address), { email, password });
    },
  };
}

export function registration(suite: ApiSuite): void {
  let person: Person;
  before(async () => {
    person = await makeMember(suite);
  });
  const { register, authorize, consentTo } = selfRegistered(suite.url, () => person);

  test("an MCP client finds its way from a refusal to a token for that server alone", async () => {
    const server = `${suite.url()}/main/functions/tool/mcp`;
    const refused = await fetch(server, { method: "POST", body: "{}" });
    assert.equal(refused.status, 401);
    const [, found = ""] = /resource_metadata="([^"]+)"/.exec(refused.headers.get("www-authenticate") ?? "") ?? [];
    const kept: { tokens?: OAuthTokens; client?: OAuthClientInformationMixed; verifier?: string; page?: URL } = {};
    const provider: OAuthClientProvider = {
      redirectUrl: CALLBACK,
      clientMetadata: { client_name: "A <b>client</b>", redirect_uris: [CALLBACK] },
      clientInformation: () => kept.client,
      saveClientInformation: (client) => {
        kept.client = client;
      },
      tokens: () => kept.tokens,
      saveTokens: (tokens) => {
        kept.tokens = tokens;
      },
      redirectToAuthorization: (page) => {
        kept.page = page;
      },
      saveCodeVerifier: (verifier) => {
        kept.verifier = verifier;
      },
      codeVerifier: () => kept.verifier ?? "",
    };
    const flow = { serverUrl: server, resourceMetadataUrl: new URL(found) };
    assert.equal(await auth(provider, flow), "REDIRECT");
    const browser = new Browser(suite.url());
    const consent = await consentTo(browser, kept.page?.href ?? "");
    assert.ok(consent.text.includes("A &#60;b&#62;client&#60;/b&#62;"), "its name is text");
    assert.ok(consent.text.includes("functions:get") && !consent.text.includes("everything that you may do"));
    assert.ok(consent.text.includes(CALLBACK), "people see where it is answered");
    const back = new URL((await browser.submit(consent, { step: "allow" })).url);
    const authorizationCode = back.searchParams.get("code") ?? "";
    assert.equal(await auth(provider, { ...flow, authorizationCode }), "AUTHORIZED");
    const key = kept.tokens?.access_token ?? "";
    const called = await fetch(server, { method: "POST", body: "{}", headers: { authorization: `Bearer ${key}` } });
    assert.equal(called.status, 404, "let in, and there is no such function");
    assert.equal((await suite.call("GET", "/functions/tool", { key })).status, 404);
    for (const path of ["/agents", "/api_keys", "/functions"])
      assert.equal((await suite.call("GET", path, { key })).status, 403, path);
    assert.ok(kept.tokens?.refresh_token);
    assert.equal(await auth(provider, flow), "AUTHORIZED", "renewed without the person");
  });

  test("it never has every right, whatever it asks for", async () => {
    const { body } = await register({ redirect_uris: [CALLBACK] });
    const page = await new Browser(suite.url()).visit(authorize(body.client_id ?? "", { scope: "admin" }));
    assert.equal(new URL(page.url).searchParams.get("error"), "invalid_scope");
    const consent = await consentTo(new Browser(suite.url()), authorize(body.client_id ?? ""));
    assert.ok(consent.text.includes("agents:get") && !consent.text.includes("everything that you may do"));
    const { registration_endpoint: endpoint } = (await (
      await fetch(`${suite.url()}/.well-known/oauth-authorization-server`)
    ).json()) as { registration_endpoint: string };
    assert.equal(endpoint, `${suite.url()}/oauth/register`);
  });

  test("what it says about itself is checked, and no secret is given out", async () => {
    const made = await register({
      redirect_uris: ["https://app.example/cb", "http://localhost/cb", "com.example.app:/cb"],
      token_endpoint_auth_method: "client_secret_basic",
      grant_types: ["client_credentials", "implicit"],
      client_id: "service",
      client_name: "Two\u202elines\n  of it",
      scope: "admin",
    });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    assert.notEqual(made.body.client_id, "service");
    assert.equal(made.body.client_secret, undefined);
    assert.deepEqual(
      [made.body.token_endpoint_auth_method, made.body.grant_types, made.body.client_name],
      ["none", ["authorization_code", "refresh_token"], "Two lines of it"],
    );
    for (const uri of [
      "http://app.example/cb",
      "https://127.0.0.1/cb",
      "https://user@app.example/cb",
      "https://app.example/cb#x",
      "https://*.example/cb",
      "javascript:alert(1)",
      "data:text/html,x",
      "file:///etc/passwd",
      "not an address",
    ]) {
      const { status, body } = await register({ redirect_uris: [uri] });
      assert.deepEqual([status, body.error], [400, "invalid_redirect_uri"], uri);
    }
    for (const wrong of [{}, { redirect_uris: [] }, { redirect_uris: Array(11).fill(CALLBACK) }, { redirect_uris: 1 }])
      assert.equal((await register(wrong)).body.error, "invalid_client_metadata", JSON.stringify(wrong));
  });
}
