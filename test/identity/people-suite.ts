/** People sign in: with a code and a proof key, from a device, and what an attacker may try on the way. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { ApiSuite } from "../each-platform.ts";
import type { Browser } from "./browser.ts";
import { type AddedPerson, addPerson, makeMember, makeRobot } from "./people.ts";
import { DEVICE_GRANT, type Program, program, proof } from "./program.ts";

export function peopleTokens(suite: ApiSuite): void {
  let person: AddedPerson;
  let client: Program;

  before(async () => {
    client = program(suite.url());
    person = await makeMember(suite);
  });

  const post: Program["post"] = (...given) => client.post(...given);
  const authorizeUrl: Program["authorizeUrl"] = (...given) => client.authorizeUrl(...given);
  const signIn: Program["signIn"] = (...given) => client.signIn(...given);
  const codeFrom: Program["codeFrom"] = (...given) => client.codeFrom(...given);
  const redeem: Program["redeem"] = (...given) => client.redeem(...given);
  const tokens: Program["tokens"] = (...given) => client.tokens(...given);
  const refresh: Program["refresh"] = (...given) => client.refresh(...given);
  const browse = (): Browser => client.browser();

  const statusWith = async (key: string, path = "/drives"): Promise<number> =>
    (await suite.call("GET", path, { key, workspace: "main" })).status;

  test("a code with its proof key becomes tokens, once", async () => {
    const { verifier, challenge } = proof();
    const code = await codeFrom(person, challenge);
    assert.equal((await redeem(code, proof().verifier)).body.error, "invalid_grant");
    const answer = await redeem(code, verifier);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    assert.equal(answer.body.expires_in, 7200);
    const key = answer.body.access_token ?? "";
    assert.equal(await statusWith(key), 200);
    const replay = await redeem(code, verifier);
    assert.equal(replay.body.error, "invalid_grant");
    assert.equal(await statusWith(key), 401, "a code that is used twice takes its tokens with it");
  });

  test("scopes that were asked for are all there is", async () => {
    const { access } = await tokens(person, "openid drives:list");
    assert.equal(await statusWith(access), 200);
    assert.equal(await statusWith(access, "/volumes"), 403);
    const browser = browse();
    assert.equal((await browser.visit(authorizeUrl(proof().challenge, { scope: "made:up" }))).status, 400);
  });

  test("a refresh token works once; used again it ends the whole consent", async () => {
    const first = await tokens(person);
    const second = await refresh(first.refresh);
    assert.equal(second.status, 200, JSON.stringify(second.body));
    assert.notEqual(second.body.refresh_token, first.refresh);
    assert.equal(await statusWith(second.body.access_token ?? ""), 200);
    assert.equal((await refresh(first.refresh)).body.error, "invalid_grant");
    assert.equal((await refresh(second.body.refresh_token ?? "")).body.error, "invalid_grant");
    assert.equal(await statusWith(second.body.access_token ?? ""), 401);
  });

  test("of many that refresh at once, one succeeds", async () => {
    const { refresh: token } = await tokens(person);
    const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(token)));
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  });

  test("a revoked refresh token takes the access token with it", async () => {
    const { access, refresh: token } = await tokens(person);
    const answer = await post("/oauth/revoke", { token, client_id: "service" });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    assert.equal(await statusWith(access), 401);
  });

  test("what was given for one purpose is worth nothing for another", async () => {
    const { verifier, challenge } = proof();
    const code = await codeFrom(person, challenge, { scope: "openid drives:list drives:get" });
    assert.equal(await statusWith(code), 401, "a code");
    const { body } = await redeem(code, verifier);
    assert.equal(await statusWith(body.access_token ?? ""), 200, "the control");
    assert.ok(body.id_token);
    assert.equal(await statusWith(body.id_token), 401, "a token about somebody");
    assert.equal(await statusWith(body.refresh_token ?? ""), 401, "a refresh token");
    assert.equal((await refresh(body.access_token ?? "")).body.error, "invalid_grant");
    const drive = `for-tokens-${Date.now()}`;
    await suite.make("/drives", drive);
    const opened = await suite.call("POST", `/drives/${drive}/access-token`, { key: body.access_token ?? "" });
    assert.ok(opened.body.access_token, JSON.stringify(opened.body));
    assert.equal(await statusWith(opened.body.access_token), 401, "a token for a drive");
    const { body: machine } = await suite.call("POST", "/service_accounts", { body: { name: "robot" } });
    assert.equal(await statusWith(machine.client_secret), 401, "a client secret");
    const stolen = { grant_type: "refresh_token", refresh_token: body.refresh_token };
    const credentials = { client_id: machine.client_id, client_secret: machine.client_secret };
    assert.notEqual((await post("/oauth/token", { ...stolen, ...credentials })).status, 200, "of another client");
  });

  test("a public client without a proof key, or with a foreign address, gets nothing", async () => {
    const { challenge } = proof();
    const refused: Record<string, string>[] = [
      { redirect_uri: "https://evil.example/callback" },
      { redirect_uri: "http://127.0.0.1:43210/callback/../other" },
      { redirect_uri: "http://127.0.0.1.evil.example/callback" },
      { redirect_uri: "http://127.0.0.1:43210@evil.example/callback" },
      { redirect_uri: "javascript:alert(1)" },
      { client_id: "nobody" },
    ];
    for (const more of refused) {
      const page = await browse().visit(authorizeUrl(challenge, more));
      assert.equal(page.status, 400, JSON.stringify(more));
      // At the platform's own pages, not at the address that was asked for.
      assert.equal(
        page.url.replace("//console.localhost:", "//127.0.0.1:").indexOf(`${suite.url()}/oauth/`),
        0,
        page.url,
      );
    }
    const bare = new URL((await browse().visit(authorizeUrl(null))).url);
    assert.equal(bare.searchParams.get("error"), "invalid_request");
    const plain = await browse().visit(authorizeUrl(challenge, { code_challenge_method: "plain" }));
    assert.equal(new URL(plain.url).searchParams.get("error"), "invalid_request");
  });

  test("a device is connected by a person who types its code", async () => {
    for (const prefix of ["", "/v0"]) {
      const started = await post(`${prefix}/oauth/device/code`, { client_id: "service", scope: "offline_access" });
      assert.equal(started.status, 200, JSON.stringify(started.body));
      const { device_code, user_code = "", verification_uri = "", verification_uri_complete = "" } = started.body;
      const poll = () => post(`${prefix}/oauth/token`, { grant_type: DEVICE_GRANT, client_id: "service", device_code });
      const early = await poll();
      assert.equal(early.status, 400);
      assert.equal(early.body.error, "authorization_pending");
      assert.ok(verification_uri_complete.startsWith(verification_uri));
      const browser = browse();
      const wrong = await browser.submit(await browser.visit(verification_uri), { user_code: "AAAA-AAAA" });
      assert.match(wrong.text, /not known/);
      const begun = await browser.submit(wrong, { user_code });
      const confirm = await browser.submit(begun, {});
      assert.match(confirm.text, new RegExp(user_code));
      const consent = await signIn(browser, await browser.submit(confirm, {}), person);
      const done = await browser.submit(consent, { step: "allow" });
      assert.match(done.text, /You are signed in/);
      const answer = await poll();
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      assert.equal(await statusWith(answer.body.access_token ?? ""), 200);
      assert.equal((await refresh(answer.body.refresh_token ?? "")).status, 200);
      assert.equal((await poll()).body.error, "invalid_grant");
    }
  });

  test("a person who says no leaves the program without a token", async () => {
    const browser = browse();
    const consent = await signIn(browser, await browser.visit(authorizeUrl(proof().challenge)), person);
    const back = new URL((await browser.submit(consent, { step: "deny" })).url);
    assert.equal(back.searchParams.get("error"), "access_denied");
    assert.equal(back.searchParams.get("code"), null);
  });

  test("steps belong to the browser that began them, and to people", async () => {
    const browser = browse();
    const page = await browser.visit(authorizeUrl(proof().challenge));
    const fields = { email: person.email, password: person.password };
    const other = browse();
    assert.equal((await other.submit(page, fields)).status, 400, "no cookie of that step");
    assert.equal((await browser.submit(page, fields, { origin: "https://evil.example" })).status, 403);
    assert.equal((await browser.submit(page, fields, { "sec-fetch-site": "cross-site" })).status, 403);
    assert.equal((await browser.submit(page, fields, { "sec-fetch-mode": "cors" })).status, 403);
    assert.equal((await browser.visit(page.url, { headers: { "sec-fetch-dest": "iframe" } })).status, 403);
    const csp = String(page.headers["content-security-policy"]);
    assert.match(csp, /default-src 'none'/);
    assert.match(csp, /frame-ancestors 'none'/);
    assert.match(csp, /form-action 'self';/);
    assert.equal(page.headers["cross-origin-opener-policy"], "same-origin");
    assert.equal((await browser.submit(page, { ...fields, secret: "guessed" })).status, 400, "the form's secret");
    assert.equal((await browser.submit(page, fields, { origin: "null" })).status, 403);
    assert.ok(!page.text.includes("<script"));
    const secret = /name="secret" value="([^"]+)"/.exec(page.text)?.[1] ?? "";
    const second = browse();
    const theirs = await second.visit(authorizeUrl(proof().challenge));
    assert.equal((await second.submit(theirs, { ...fields, secret })).status, 400, "the secret of another's form");
    // The step's own cookie, without the word of the browser that began it.
    const thief = browse();
    for (const [key, cookie] of browser.cookies) if (!cookie.name.endsWith("_browser")) thief.cookies.set(key, cookie);
    assert.equal((await thief.submit(page, fields)).status, 400, "a stolen step");
  });

  test("a session id from before the sign-in is worth nothing after it", async () => {
    const browser = browse();
    const { body } = await post("/oauth/device/code", { client_id: "service" });
    await browser.visit(`/oauth/device?user_code=${body.user_code}`);
    const planted = browser.cookie("_session")?.value;
    assert.ok(planted);
    await signIn(browser, await browser.visit(authorizeUrl(proof().challenge)), person);
    assert.ok(browser.cookie("_session"));
    assert.notEqual(browser.cookie("_session")?.value, planted);
  });

  test("guessing passwords is stopped, and tells nothing about who exists", async () => {
    const browser = browse();
    const page = await browser.visit(authorizeUrl(proof().challenge));
    const say = async (who: string, password: string) => {
      const answer = await browser.submit(page, { email: who, password });
      return { status: answer.status, text: answer.text.replaceAll(who, "X") };
    };
    assert.deepEqual(await say(person.email, "wrong"), await say("nobody@example.test", "wrong"));
    const victim = await addPerson(suite);
    const address = victim.email;
    const guesses = await Promise.all(Array.from({ length: 12 }, () => say(address, "guess")));
    assert.equal(guesses.filter(({ status }) => status === 401).length, 10);
    assert.equal((await say(address, person.password)).status, 429, "not even the right one now");
    const path = `/accounts/${victim.accountId}/audit?action=signIn&actor=${victim.sub}`;
    const { body } = await suite.call<{ data: { status: number }[] }>("GET", path);
    const statuses = body.data.map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 401).length, 10);
    assert.equal(statuses.filter((status) => status === 429).length, 1, "once, however many follow");
  });

  test("a service account may ask whether a token of its workspace is good", async () => {
    const { access, refresh: token } = await tokens(person);
    const guard = await makeRobot(suite);
    const authorization = `Basic ${Buffer.from(`${guard.id}:${guard.secret}`).toString("base64")}`;
    const asked = await post("/oauth/introspect", { token: access }, { authorization });
    assert.deepEqual([asked.body.active, asked.body.sub], [true, person.sub]);
    for (const text of ["garbage", token, (await makeRobot(suite)).key]) {
      const { status, body } = await post("/oauth/introspect", { token: text }, { authorization });
      assert.deepEqual([status, body], [200, { active: false }]);
    }
    assert.equal((await post("/oauth/introspect", { token: access })).status, 401);
  });

  test("people see where they are signed in, and sign out from afar", async () => {
    const { access, refresh: token } = await tokens(person);
    const other = await tokens(person);
    const list = async () => (await suite.call("GET", "/users/me/sessions", { key: other.access })).body;
    const [own, older] = (await list()).filter(({ type }) => type === "program");
    assert.equal(own?.client, "service");
    const ended = await suite.call("DELETE", `/users/me/sessions/${older?.id}`, { key: other.access });
    assert.equal(ended.status, 200);
    assert.equal(await statusWith(access), 401);
    assert.equal((await refresh(token)).body.error, "invalid_grant");
    assert.equal(await statusWith(other.access), 200);
    assert.equal((await suite.call("DELETE", `/users/me/sessions/${own?.id}`)).status, 404, "it is not the admin's");
  });

  test("a password is changed by who knows it, and that ends every session", async () => {
    const { access: key } = await tokens(person);
    const set = (body: object, by = key) => suite.call("PUT", "/users/me/password", { key: by, body });
    assert.equal((await set({ newPassword: "short" })).status, 400);
    assert.equal((await set({ newPassword: "long enough, surely" })).status, 403);
    assert.equal((await set({ newPassword: "long enough, surely", currentPassword: "wrong" })).status, 403);
    assert.equal((await set({ newPassword: person.password, currentPassword: person.password })).status, 200);
    assert.equal(await statusWith(key), 401);
    const { key: robot } = await makeRobot(suite);
    assert.equal((await set({ newPassword: "long enough, surely" }, robot)).status, 403);
    const { access: found } = await tokens(person);
    const guess = () => set({ newPassword: "long enough, surely", currentPassword: "guess" }, found);
    const guesses = await Promise.all(Array.from({ length: 12 }, guess));
    assert.equal(
      guesses.filter(({ status }) => status === 429).length,
      2,
      "whoever found a token cannot go on guessing",
    );
  });
}
