/** Programs that register themselves: an MCP client that has only an address, and what others make of the open door. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { before, test } from "node:test";
import { auth, type OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import type { OAuthClientInformationMixed, OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import type { ApiSuite } from "../each-platform.ts";
import { Browser, type Page } from "./browser.ts";
import { makeMember } from "./people.ts";
import { CALLBACK, type Person } from "./program.ts";

/** A site that publishes documents of programs. */
async function startSite() {
  const pages = new Map<string, { body: string; type: string; fetched: number }>();
  const server = createServer((request, response) => {
    const page = pages.get(request.url ?? "");
    if (page === undefined) return void response.writeHead(404).end();
    page.fetched += 1;
    response.writeHead(200, { "content-type": page.type }).end(page.body);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    fetched: (path: string): number => pages.get(path)?.fetched ?? 0,
    publish(path: string, document: (clientId: string) => object, type = "application/json"): string {
      pages.set(path, { body: JSON.stringify(document(url + path)), type, fetched: 0 });
      return url + path;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

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

  test("a client id may be the address of a document that describes the program", async () => {
    await using site = await startSite();
    const verifier = randomBytes(32).toString("base64url");
    const challenge = { code_challenge: createHash("sha256").update(verifier).digest("base64url") };
    const id = site.publish("/app/client.json", (client_id) => ({
      ...{ client_id, client_name: "Desk <i>app</i>", redirect_uris: [CALLBACK], scope: "admin" },
    }));
    const browser = new Browser(suite.url());
    const consent = await consentTo(browser, authorize(id, challenge));
    assert.ok(consent.text.includes("Desk &#60;i&#62;app&#60;/i&#62;"));
    assert.ok(consent.text.includes(`<strong>${new URL(id).host}</strong> describes it`), "people see whose it is");
    assert.ok(!consent.text.includes("everything that you may do"));
    const back = new URL((await browser.submit(consent, { step: "allow" })).url);
    const exchanged = await fetch(`${suite.url()}/oauth/token`, {
      method: "POST",
      body: new URLSearchParams({
        ...{ grant_type: "authorization_code", client_id: id, redirect_uri: CALLBACK, code_verifier: verifier },
        code: back.searchParams.get("code") ?? "",
      }),
    });
    assert.equal(exchanged.status, 200, await exchanged.clone().text());
    const { access_token: key } = (await exchanged.json()) as { access_token: string };
    assert.equal((await suite.call("GET", "/functions/tool", { key })).status, 404, "let in");
    assert.equal((await suite.call("GET", "/api_keys", { key })).status, 403);
    assert.equal(site.fetched("/app/client.json"), 1, "kept");
    const metadata = await fetch(`${suite.url()}/.well-known/oauth-authorization-server`);
    assert.equal(((await metadata.json()) as Record<string, unknown>).client_id_metadata_document_supported, true);
  });

  test("a document that does not describe its address is refused, and so are odd addresses", async () => {
    await using site = await startSite();
    const good = { redirect_uris: [CALLBACK] };
    const ids = [
      site.publish("/other", () => ({ ...good, client_id: "https://app.example/client.json" })),
      site.publish("/secret", (client_id) => ({
        ...good,
        client_id,
        token_endpoint_auth_method: "client_secret_basic",
      })),
      site.publish("/scheme", (client_id) => ({ client_id, redirect_uris: ["javascript:alert(1)"] })),
      site.publish("/large", (client_id) => ({ ...good, client_id, filler: "x".repeat(20_000) })),
      site.publish("/elsewhere", (client_id) => ({ ...good, client_id }), "text/html"),
      `${site.publish("/fine", (client_id) => ({ ...good, client_id }))}?query`,
      site.publish("/", (client_id) => ({ ...good, client_id })),
      `${site.url.replace("http://", "http://user@")}/fine`,
      "http://169.254.169.254/latest/meta-data",
      "http://app.example/client.json",
    ];
    for (const id of ids) {
      const page = await new Browser(suite.url()).visit(authorize(id));
      assert.ok(page.text.includes("That did not work"), id);
    }
    assert.deepEqual([site.fetched("/fine"), site.fetched("/")], [0, 0]);
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
