/** What somebody without credentials can take away from others: their sign-in, and the database's room. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { Agent, request } from "undici";
import { hashPassword } from "../../src/auth/passwords.ts";
import { makeUser } from "../identities.ts";
import { Browser, type Page } from "../identity/browser.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const PASSWORD = "correct horse battery";
/** Of this suite's server: small, so that a flood is a few requests. */
const WRITES_MAX = 120;

suite("lockout", () => {
  let platform: TestPlatform;
  const elsewhere = new Agent({ localAddress: "127.0.0.77" });
  const third = new Agent({ localAddress: "127.0.0.78" });

  before(async () => {
    platform = await startTestPlatform({ config: { anonymous_writes: String(WRITES_MAX) } });
  });
  after(async () => {
    await Promise.all([elsewhere.destroy(), third.destroy()]);
    await platform.stop();
  });

  const makePerson = async (): Promise<string> => {
    const { people } = platform.app.store;
    const [account] = await people.listAccountsAcrossUsers();
    const { sub } = await makeUser(platform.app.store, account?.id ?? "", "member");
    await people.setPassword(sub, await hashPassword(PASSWORD));
    return (await people.getUser(sub))?.email ?? "";
  };

  /** For requests that are dialled by address. */
  const atPages = () => ({ host: new URL(platform.app.pagesUrl).host });

  const authorizeUrl = (): string =>
    `/oauth/authorize?${new URLSearchParams({
      ...{ client_id: "service", response_type: "code", redirect_uri: "http://127.0.0.1:43210/callback" },
      code_challenge: createHash("sha256").update(randomBytes(32)).digest("base64url"),
      code_challenge_method: "S256",
    })}`;

  const signIn = async (browser: Browser, email: string, password = PASSWORD): Promise<Page> =>
    browser.submit(await browser.visit(authorizeUrl()), { email, password });

  /** The browser's form, sent from another address. */
  const submitFromElsewhere = async (browser: Browser, page: Page, email: string): Promise<number> => {
    const { pathname, host, origin } = new URL(page.url);
    const { statusCode, body } = await request(platform.url + pathname, {
      dispatcher: elsewhere,
      method: "POST",
      headers: {
        host,
        origin,
        "content-type": "application/x-www-form-urlencoded",
        cookie: [...browser.cookies.values()].map(({ name, value }) => `${name}=${value}`).join("; "),
        ...{ "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", "sec-fetch-site": "same-origin" },
      },
      body: new URLSearchParams({ ...hiddenFields(page), email, password: "guess" }).toString(),
    });
    await body.dump();
    return statusCode;
  };

  test("wrong passwords from one address do not keep the person out at another", async () => {
    const email = await makePerson();
    const attacker = new Browser(platform.url);
    const page = await attacker.visit(authorizeUrl());
    const tally = new Map<number, number>();
    for (let each = 0; each < 110; each++) {
      const status = await submitFromElsewhere(attacker, page, email);
      tally.set(status, (tally.get(status) ?? 0) + 1);
    }
    assert.deepEqual(Object.fromEntries(tally), { 401: 10, 429: 100 });
    assert.match((await signIn(new Browser(platform.url), email)).text, /Allow access/);
  });

  test("a browser that is known keeps working when many addresses have used up the tries of a person", async () => {
    const email = await makePerson();
    const known = new Browser(platform.url);
    assert.match((await signIn(known, email)).text, /Allow access/);
    const { signInTries } = platform.app.store;
    // What a hundred addresses do, without the hundred tenths of a second that checking their passwords takes.
    while ((await signInTries.count([{ key: `person:${email}`, max: 100 }])) === "allowed");
    assert.equal((await signIn(new Browser(platform.url), email)).status, 429);
    known.forget("_session");
    assert.match((await signIn(known, email)).text, /Allow access/);

    // It is known for that person only, and guessing in it is stopped, too.
    const other = await makePerson();
    while ((await signInTries.count([{ key: `person:${other}`, max: 100 }])) === "allowed");
    known.forget("_session");
    assert.equal((await signIn(known, other)).status, 429);
    const guesses: number[] = [];
    for (let each = 0; each < 12; each++) guesses.push((await signIn(known, email, "guess")).status);
    assert.equal(guesses.filter((status) => status === 401).length, 10);
    assert.equal(guesses.filter((status) => status === 429).length, 2);
  });

  test("opening the page for devices writes nothing, with a made-up code neither", async () => {
    const { oauth } = platform.app.store;
    const before = await oauth.count("Session");
    const statuses = await Promise.all(
      Array.from({ length: 300 }, async (_, each) => {
        const path = each < 250 ? "/oauth/device" : `/oauth/device?user_code=AAAA-${each}`;
        const page = await new Browser(platform.url).visit(path);
        assert.equal(page.headers["set-cookie"], undefined);
        return page.status;
      }),
    );
    assert.ok(statuses.every((status) => status === 200 || status === 429));
    assert.ok(statuses.slice(0, 250).every((status) => status === 200));
    assert.equal(await oauth.count("Session"), before);
  });

  test("sign-ins and device codes that strangers begin are limited, by address", async () => {
    const { oauth } = platform.app.store;
    const begin = async (each: number): Promise<number> => {
      const { statusCode, headers, body } = await (each % 2 === 0
        ? request(`${platform.url}${authorizeUrl()}`, { dispatcher: elsewhere, headers: atPages() })
        : request(`${platform.url}/oauth/device/code`, {
            dispatcher: elsewhere,
            method: "POST",
            // Nobody has said that a proxy is in front: this header is worth nothing.
            headers: { "content-type": "application/json", "x-forwarded-for": `203.0.113.${each % 256}` },
            body: JSON.stringify({ client_id: "service" }),
          }));
      await body.dump();
      if (statusCode === 429) assert.match(String(headers["retry-after"]), /^\d+$/);
      return statusCode;
    };
    const written = async () => (await oauth.count("Interaction")) + (await oauth.count("DeviceCode"));
    const before = await written();
    const statuses: number[] = [];
    while (statuses.at(-1) !== 429) statuses.push(await begin(statuses.length));
    assert.equal(await written(), before + statuses.length - 1);
    const { statusCode, body } = await request(`${platform.url}${authorizeUrl()}`, {
      dispatcher: third,
      headers: atPages(),
    });
    await body.dump();
    assert.equal(statusCode, 303, "another address begins its own");
  });
});

test("behind a proxy the address that the proxy added counts, not what the client wrote before it", async () => {
  await using platform = await startTestPlatform({ config: { anonymous_writes: "5", trust_proxy: "true" } });
  const begin = async (forwarded: string): Promise<number> => {
    const { statusCode, body } = await request(`${platform.url}/oauth/device/code`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": forwarded },
      body: JSON.stringify({ client_id: "service" }),
    });
    await body.dump();
    return statusCode;
  };
  const statuses: number[] = [];
  // A bucket of five fills up again by one in twelve seconds; a flood is faster than that.
  for (let each = 0; each < 200 && statuses.at(-1) !== 429; each++)
    statuses.push(await begin(`203.0.113.${each}, 198.51.100.7`));
  assert.equal(statuses.at(-1), 429, "the spoofed part does not make another client");
  assert.equal(await begin("203.0.113.1, 198.51.100.8"), 200);
});

const hiddenFields = (page: Page): Record<string, string> =>
  Object.fromEntries(
    [...page.text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name = "", value = ""]) => [
      name,
      value,
    ]),
  );
