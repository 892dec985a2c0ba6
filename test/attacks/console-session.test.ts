/** Ways into the console that are none: used, old and foreign links, other pages, and its cookie somewhere else. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { makeConsoleLink } from "../../src/auth/console/console-link.ts";
import { MINUTE_MS, systemClock } from "../../src/lib/time/clock.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

describe("the session of the console", () => {
  let platform: TestPlatform;
  let aheadMs = 0;
  before(async () => {
    platform = await startTestPlatform({ clock: { now: () => Date.now() + aheadMs } });
  });
  after(() => platform.stop());

  const post = (path: string, { origin = platform.app.pagesUrl, cookie = "", body = {} } = {}) =>
    fetch(platform.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...(origin === "" ? {} : { origin }), cookie },
      body: JSON.stringify(body),
    });
  const secretOf = (url: string): string => new URL(url).hash.slice(1);
  const enter = async (link: string | null): Promise<Response> =>
    post("/console/session", { body: { link: secretOf(link ?? "") } });
  const cookieOf = (response: Response): string => (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const signIn = async (): Promise<string> => cookieOf(await enter(await platform.app.consoleLink()));
  const tokenOf = async (cookie: string): Promise<string> =>
    ((await (await post("/console/token", { cookie })).json()) as { token: string }).token;

  test("a link gives a cookie that scripts cannot read, and the cookie gives tokens of ten minutes", async () => {
    const response = await enter(await platform.app.consoleLink());
    assert.equal(response.status, 204);
    const line = response.headers.get("set-cookie") ?? "";
    for (const word of ["HttpOnly", "SameSite=Strict", "Path=/console"]) assert.ok(line.includes(word), line);
    const told = (await (await post("/console/token", { cookie: cookieOf(response) })).json()) as {
      token: string;
      expiresIn: number;
    };
    assert.equal(told.expiresIn, 600);
    assert.equal((await platform.call("GET", "/workspaces", { key: told.token })).status, 200);
  });

  test("a link works once", async () => {
    const link = await platform.app.consoleLink();
    assert.equal((await enter(link)).status, 204);
    const again = await enter(link);
    assert.deepEqual([again.status, again.headers.get("set-cookie")], [410, null]);
  });

  test("a link of another person does not replace the session of a browser without asking", async () => {
    const { store } = platform.app;
    const cookie = await signIn();
    const stranger = await store.write((tx) => store.people.createUser(tx, { email: "stranger@example.test" }));
    const made = await makeConsoleLink({ store, clock: systemClock }, platform.app.pagesUrl, {
      ...{ sub: stranger.sub, hangsOn: null },
    });
    const link = secretOf(made.url);
    const refused = await post("/console/session", { cookie, body: { link } });
    assert.deepEqual([refused.status, refused.headers.get("set-cookie")], [409, null]);
    assert.match(await refused.text(), /is signed in as .*; the link is for stranger@example\.test/);
    const asked = await post("/console/session", { cookie, body: { link, replace: "true" } });
    assert.equal(asked.status, 204, "the link was not used up");
    const own = secretOf((await platform.app.consoleLink()) ?? "");
    assert.equal((await post("/console/session", { cookie, body: { link: own } })).status, 204, "the same person");
  });

  test("of many that use a link at the same moment one gets in", async () => {
    const link = await platform.app.consoleLink();
    const answers = await Promise.all(Array.from({ length: 8 }, () => enter(link)));
    assert.equal(answers.filter(({ status }) => status === 204).length, 1);
  });

  test("a link ends after 30 minutes, and a token after ten", async (t) => {
    t.after(() => {
      aheadMs = 0;
    });
    const link = await platform.app.consoleLink();
    const token = await tokenOf(await signIn());
    aheadMs = 11 * MINUTE_MS;
    assert.equal((await platform.call("GET", "/workspaces", { key: token })).status, 401);
    aheadMs = 31 * MINUTE_MS;
    assert.equal((await enter(link)).status, 410);
  });

  test("another origin, or none, gets neither session nor token", async () => {
    const cookie = await signIn();
    const link = await platform.app.consoleLink();
    for (const origin of ["", "null", platform.url, "http://evil.example", `${platform.app.pagesUrl}.evil.example`])
      for (const path of ["/console/session", "/console/token", "/console/sign-out"]) {
        const answer = await post(path, { origin, cookie, body: { link: secretOf(link ?? "") } });
        assert.deepEqual([answer.status, answer.headers.get("set-cookie")], [403, null], `${path} from ${origin}`);
      }
    assert.equal((await enter(link)).status, 204, "what was refused has not used the link up");
    assert.equal((await post("/console/token", { cookie })).status, 200, "nor ended the session");
  });

  test("the API does not know the cookie", async () => {
    const cookie = await signIn();
    for (const path of ["/v0/workspaces", "/v0/sandboxes", "/main/sandboxes/x/"])
      assert.ok([401, 404].includes((await fetch(platform.url + path, { headers: { cookie } })).status), path);
  });

  test("two cookies of the name, of which one is somebody else's, are none", async () => {
    const [own, other] = [await signIn(), await signIn()];
    assert.equal((await post("/console/token", { cookie: `${own}; ${other}` })).status, 401);
  });

  test("whoever signs out is out, and so is the token", async () => {
    const cookie = await signIn();
    const token = await tokenOf(cookie);
    assert.equal((await post("/console/sign-out", { cookie })).status, 200);
    assert.equal((await post("/console/token", { cookie })).status, 401);
    assert.equal((await platform.call("GET", "/workspaces", { key: token })).status, 401);
  });

  test("a session is in the person's list, and ends from there", async () => {
    const cookie = await signIn();
    const token = await tokenOf(cookie);
    const { body: sessions } = await platform.call("GET", "/users/me/sessions", { key: token });
    const own = sessions.find(({ client }: { client?: string }) => client === "service-console");
    assert.ok(own, JSON.stringify(sessions));
    await platform.call("DELETE", `/users/me/sessions/${own.id}`, { key: token });
    assert.equal((await post("/console/token", { cookie })).status, 401);
  });

  test("a key with some scopes makes no link, and a key that ends takes its sessions along", async () => {
    const make = (fields: object) => platform.call("POST", "/api_keys", { body: fields, workspace: "main" });
    const { body: narrow } = await make({ name: "narrow", scopes: ["apiKey:write", "sandboxes:list"] });
    assert.equal((await platform.call("POST", "/users/me/console_link", { key: narrow.apiKey })).status, 403);
    const { body: brief } = await make({ name: "brief", expires_in: "1h" });
    const { status, body: link } = await platform.call("POST", "/users/me/console_link", { key: brief.apiKey });
    assert.equal(status, 200, JSON.stringify(link));
    const cookie = cookieOf(await enter(link.url));
    const token = await tokenOf(cookie);
    const { body: made } = await platform.call("POST", "/api_keys", {
      key: token,
      workspace: "main",
      body: { name: "more" },
    });
    assert.equal((await platform.call("GET", "/workspaces", { key: made.apiKey })).status, 200);
    await platform.call("DELETE", `/api_keys/${brief.id}`, { workspace: "main" });
    assert.equal((await post("/console/token", { cookie })).status, 401);
    assert.equal((await platform.call("GET", "/workspaces", { key: token })).status, 401);
    assert.equal((await platform.call("GET", "/workspaces", { key: made.apiKey })).status, 401);
  });

  test("the page of the console reads the answers of workloads, and no other page does", async () => {
    await platform.call("POST", "/models", {
      workspace: "main",
      body: { metadata: { name: "read" }, spec: { runtime: { type: "mock" } } },
    });
    const url = `${platform.url}/main/models/read/chat/completions`;
    const body = JSON.stringify({ messages: [{ role: "user", content: "hello" }] });
    const ask = (origin: string, method: string, more: Record<string, string>) =>
      fetch(url, { method, headers: { origin, ...more }, ...(method === "POST" ? { body } : {}) });
    const wanted = { "access-control-request-method": "POST", "access-control-request-headers": "authorization" };
    const bearer = { authorization: `Bearer ${platform.apiKey}`, "content-type": "application/json" };
    const { pagesUrl } = platform.app;
    const allowed = ({ status, headers }: Response) => [status, headers.get("access-control-allow-origin")];
    assert.deepEqual(allowed(await ask(pagesUrl, "OPTIONS", wanted)), [204, pagesUrl]);
    assert.deepEqual(allowed(await ask(pagesUrl, "POST", bearer)), [200, pagesUrl]);
    assert.deepEqual(allowed(await ask(pagesUrl, "POST", {})), [401, pagesUrl], "a refusal can be read too");
    for (const origin of ["null", "http://evil.example", `${pagesUrl}.evil.example`]) {
      assert.equal((await ask(origin, "OPTIONS", wanted)).headers.get("access-control-allow-origin"), null, origin);
      assert.deepEqual(allowed(await ask(origin, "POST", bearer)), [200, null], origin);
    }
  });

  test("no page may frame the console, and its page runs no script but its own", async () => {
    const answer = await consolePage(platform);
    const policy = String(answer.headers["content-security-policy"]);
    for (const rule of [
      "default-src 'none'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "require-trusted-types-for 'script'",
    ])
      assert.ok(policy.includes(rule), policy);
    assert.ok(!policy.includes("unsafe"), policy);
    assert.ok(!/<script(?![^>]*\bsrc=)/.test(answer.body), "an inline script");
    assert.equal(answer.headers["x-frame-options"], "DENY");
  });
});

/** The console's page, asked for by its own host name, which only browsers resolve. */
async function consolePage(platform: TestPlatform): Promise<{ headers: IncomingHttpHeaders; body: string }> {
  const { host } = new URL(platform.app.pagesUrl);
  const asked = get(`${platform.app.listensAt}/`, { headers: { host, accept: "text/html" } });
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  return { headers: response.headers, body: await text(response) };
}
