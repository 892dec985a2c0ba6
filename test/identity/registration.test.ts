/** Programs that register themselves: an MCP client that has only an address, and what others make of the open door. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { auth, type OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import type { OAuthClientInformationMixed, OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import { ADMIN_EMAIL } from "../../src/auth/bootstrap.ts";
import { hashPassword } from "../../src/auth/passwords.ts";
import { DAY_MS } from "../../src/lib/clock.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { Browser, type Page } from "./browser.ts";

const PASSWORD = "correct horse battery";
const CALLBACK = "http://127.0.0.1:43210/callback";

describe("programs that register themselves", () => {
  let platform: TestPlatform;
  let aheadMs = 0;
  before(async () => {
    platform = await startTestPlatform({ clock: { now: () => Date.now() + aheadMs } });
    const admin = await platform.app.store.people.getUser(ADMIN_EMAIL);
    await platform.app.store.people.setPassword(admin?.sub ?? "", await hashPassword(PASSWORD));
  });
  after(() => platform.stop());

  const register = async (body: object) => {
    const response = await fetch(`${platform.url}/oauth/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  };
  const authorize = (clientId: string, more: Record<string, string> = {}): string =>
    `/oauth/authorize?${new URLSearchParams({
      client_id: clientId,
      response_type: "code",
      redirect_uri: CALLBACK,
      code_challenge: createHash("sha256").update(randomBytes(32)).digest("base64url"),
      code_challenge_method: "S256",
      ...more,
    })}`;
  const consentTo = async (browser: Browser, address: string): Promise<Page> =>
    browser.submit(await browser.visit(address), { email: ADMIN_EMAIL, password: PASSWORD });

  test("an MCP client finds its way from a refusal to a token for that server alone", async () => {
    const server = `${platform.url}/main/functions/tool/mcp`;
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
    const browser = new Browser(platform.url);
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
    assert.equal((await platform.call("GET", "/functions/tool", { key })).status, 404);
    for (const path of ["/agents", "/api_keys", "/functions"])
      assert.equal((await platform.call("GET", path, { key })).status, 403, path);
    assert.ok(kept.tokens?.refresh_token);
    assert.equal(await auth(provider, flow), "AUTHORIZED", "renewed without the person");
  });

  test("it never has every right, whatever it asks for", async () => {
    const { body } = await register({ redirect_uris: [CALLBACK] });
    const page = await new Browser(platform.url).visit(authorize(body.client_id ?? "", { scope: "admin" }));
    assert.equal(new URL(page.url).searchParams.get("error"), "invalid_scope");
    const consent = await consentTo(new Browser(platform.url), authorize(body.client_id ?? ""));
    assert.ok(consent.text.includes("agents:get") && !consent.text.includes("everything that you may do"));
    const { registration_endpoint: endpoint } = (await (
      await fetch(`${platform.url}/.well-known/oauth-authorization-server`)
    ).json()) as { registration_endpoint: string };
    assert.equal(endpoint, `${platform.url}/oauth/register`);
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

  test("one that nobody allows anything is forgotten, and many at once are slowed down", async () => {
    aheadMs += DAY_MS / 24; // a new quarter of an hour
    const { body } = await register({ redirect_uris: [CALLBACK] });
    const used = (await register({ redirect_uris: [CALLBACK] })).body.client_id ?? "";
    const browser = new Browser(platform.url);
    await browser.submit(await consentTo(browser, authorize(used)), { step: "allow" });
    const first = await new Browser(platform.url).visit(authorize(body.client_id ?? ""));
    assert.match(first.text, /Sign in/);
    aheadMs += 2 * DAY_MS;
    assert.match((await new Browser(platform.url).visit(authorize(body.client_id ?? ""))).text, /did not work/);
    assert.match((await new Browser(platform.url).visit(authorize(used))).text, /Sign in/);
    const answers = await Promise.all(Array.from({ length: 40 }, () => register({ redirect_uris: [CALLBACK] })));
    assert.equal(answers.filter(({ status }) => status === 201).length, 30);
    assert.equal(answers.filter(({ status }) => status === 429).length, 10);
  });
});
