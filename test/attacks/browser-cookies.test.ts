/**
 * A workload on a host of its own tries to put an attacker's half-done sign-in into somebody's browser, which then
 * finishes it with the single sign-on of its owner: the attacker would go on as that person.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openChromium } from "../browser/chromium.ts";
import { type FrontDoor, openFrontDoor } from "../browser/front-door.ts";
import { authorizeUrl } from "../browser/people.ts";
import { serveWorkload, type WorkloadSite } from "../browser/workload-site.ts";
import { Browser } from "../identity/browser.ts";
import { CLIENT, type OtherProvider, startOtherProvider } from "../identity/other-provider.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const chromium = await openChromium();
const VICTIM = "victim@corp.test";

describe("a sign-in tossed into another browser", { skip: chromium.skip }, () => {
  let platform: TestPlatform;
  let other: OtherProvider;
  let door: FrontDoor;
  let site: WorkloadSite;
  let base = "";
  /** What the workload's page answers next. */
  const evil = { cookies: [] as string[], script: "" };

  before(async () => {
    [other, door] = await Promise.all([startOtherProvider(), openFrontDoor()]);
    base = `http://berth.example.test:${door.port}`;
    const provider = { issuer: other.issuer, client_id: CLIENT.id, client_secret: CLIENT.secret };
    platform = await startTestPlatform({
      config: {
        public_url: base,
        domain: "example.test",
        identity_providers: JSON.stringify([{ id: "corp", name: "Corp", ...provider }]),
      },
    });
    door.leadTo(platform.app.listensAt);
    other.open([`${base}/oauth/external/corp`]);
    site = await serveWorkload(platform, (_request, response) => {
      response.setHeader("set-cookie", evil.cookies);
      response.setHeader("content-type", "text/html");
      response.end(`<!doctype html><title>trying</title><script>${evil.script}</script>`);
    });
  });
  after(async () => {
    await chromium.close();
    await site[Symbol.asyncDispose]();
    await platform.stop();
    await other[Symbol.asyncDispose]();
    await door[Symbol.asyncDispose]();
  });

  for (const way of ["header", "script"] as const)
    test(`is not finished there (cookies by ${way})`, async () => {
      const attacker = new Browser(base);
      const page = await attacker.visit(authorizeUrl(base));
      assert.match(page.text, /Sign in with Corp/);
      const link = /\/oauth\/interaction\/[^"]+\/with\/corp/.exec(page.text)?.[0];
      const away = link ? await attacker.visit(new URL(link, page.url).href) : await attacker.submit(page, {}, {}, 1);
      assert.ok(away.url.startsWith(`${other.issuer}/auth?`), `${away.status} ${away.url}`);
      // The one that resumes the sign-in stays with the attacker, who means to do that himself.
      const tossed = [...attacker.cookies.values()]
        .filter(({ name }) => !name.includes("resume"))
        .map(({ name, value, path }) => `${name}=${value}; Domain=example.test; Path=${path}`);
      evil.cookies = way === "header" ? tossed : [];
      const bake =
        way === "script" ? tossed.map((cookie) => `document.cookie=${JSON.stringify(cookie)};`).join("") : "";
      evil.script = `${bake}location.href=${JSON.stringify(away.url)}`;
      other.who.next = { sub: "victim", email: VICTIM, email_verified: true };

      const { page: victim, context } = await chromium.person();
      const shown = await victim.goto(`http://${site.id}.preview.example.test:${door.port}/`);
      assert.equal(shown?.status(), 200);
      await victim.waitForURL((url) => url.pathname.startsWith("/oauth/") && url.hostname.endsWith("example.test"));
      await victim.waitForLoadState();

      const uid = /\/oauth\/interaction\/([^/?]+)/.exec(page.url)?.[1];
      const resumed = await attacker.visit(new URL(`/oauth/authorize/${uid}`, page.url).href);
      assert.ok(!resumed.text.includes(VICTIM), resumed.text);
      assert.doesNotMatch(resumed.text, /Allow access/);
      await context.close();
    });
});
