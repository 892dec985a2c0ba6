/** Every page of the ways to sign in, in a real browser: what people see, type and click. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { CLIENT, type OtherProvider, startOtherProvider } from "../identity/other-provider.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { openChromium } from "./chromium.ts";
import { authorizeUrl, fillSignIn, makeAdmin, PASSWORD, signInAt, VERIFIER } from "./people.ts";

const chromium = await openChromium();
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

describe("signing in with a browser", { skip: chromium.skip }, () => {
  let platform: TestPlatform;
  let other: OtherProvider;
  /** A program that waits for its code; its page leads on to another, as programs' pages do. */
  let program: Server;
  let callback = "";
  let email = "";

  before(async () => {
    other = await startOtherProvider();
    platform = await startTestPlatform({
      config: {
        identity_providers: JSON.stringify([
          { id: "corp", name: "Corp", issuer: other.issuer, client_id: CLIENT.id, client_secret: CLIENT.secret },
        ]),
      },
    });
    other.open([`${platform.url}/oauth/external/corp`]);
    program = createServer((request, response) => {
      const { pathname, search } = new URL(request.url ?? "/", "http://127.0.0.1");
      if (pathname === "/callback")
        response.writeHead(302, { location: `http://localhost:${port}/done${search}` }).end();
      else response.setHeader("content-type", "text/html").end("<title>the program</title>");
    }).listen(0);
    await once(program, "listening");
    const { port } = program.address() as AddressInfo;
    callback = `http://127.0.0.1:${port}/callback`;
    ({ email } = await makeAdmin(platform));
  });
  after(async () => {
    await chromium.close();
    program.closeAllConnections();
    program.close();
    await platform.stop();
    await other[Symbol.asyncDispose]();
  });

  const person = async (work: (page: Page) => Promise<void>): Promise<void> => {
    const { page, context } = await chromium.person();
    await work(page);
    await context.close();
  };
  const heading = (page: Page, name: string): Promise<void> => page.getByRole("heading", { name }).waitFor();
  const click = (page: Page, name: string): Promise<void> => page.getByRole("button", { name, exact: true }).click();
  const post = async (path: string, fields: object) => {
    const response = await fetch(platform.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(fields),
    });
    return (await response.json()) as Record<string, string>;
  };

  test("a wrong password says so, the right one leads on, and a yes gives the program its code", () =>
    person(async (page) => {
      await page.goto(authorizeUrl(platform.url, { redirect_uri: callback }));
      assert.equal(new URL(page.url()).hostname, "console.localhost");
      await fillSignIn(page, email, "not the password");
      assert.match((await page.getByRole("alert").textContent()) ?? "", /not the right email and password/);
      await fillSignIn(page, email);
      await heading(page, "Allow access?");
      const asked = (await page.locator("main").textContent()) ?? "";
      assert.ok(asked.includes("the command line") && asked.includes(email) && asked.includes("everything"), asked);
      await click(page, "Allow");
      await page.waitForURL((url) => url.pathname === "/done");
      const code = new URL(page.url()).searchParams.get("code");
      const tokens = await post("/oauth/token", {
        grant_type: "authorization_code",
        client_id: "service",
        code,
        redirect_uri: callback,
        code_verifier: VERIFIER,
      });
      assert.equal((await platform.call("GET", "/drives", { key: tokens.access_token ?? "" })).status, 200);
    }));

  test("a no leaves the program without a code", () =>
    person(async (page) => {
      await page.goto(authorizeUrl(platform.url, { redirect_uri: callback }));
      await fillSignIn(page, email);
      await click(page, "Deny");
      await page.waitForURL((url) => url.pathname === "/done");
      const { searchParams } = new URL(page.url());
      assert.deepEqual([searchParams.get("error"), searchParams.get("code")], ["access_denied", null]);
    }));

  test("two sign-ins in one browser do not get into each other's way", () =>
    person(async (page) => {
      const second = await page.context().newPage();
      await page.goto(authorizeUrl(platform.url, { redirect_uri: callback, state: "first" }));
      await second.goto(authorizeUrl(platform.url, { redirect_uri: callback, state: "second" }));
      for (const [tab, state] of [
        [page, "first"],
        [second, "second"],
      ] as const) {
        await fillSignIn(tab, email);
        await click(tab, "Allow");
        await tab.waitForURL((url) => url.pathname === "/done");
        assert.equal(new URL(tab.url()).searchParams.get("state"), state);
      }
    }));

  test("a device is connected by typing its code, or by the address that has it", async () => {
    for (const isTyped of [true, false])
      await person(async (page) => {
        const started = await post("/oauth/device/code", { client_id: "service" });
        const { device_code, user_code = "", verification_uri = "", verification_uri_complete = "" } = started;
        await page.goto(isTyped ? verification_uri : verification_uri_complete);
        await heading(page, "Connect a device");
        if (isTyped) {
          await page.getByLabel("Code").fill("AAAA-AAAA");
          await click(page, "Continue");
          assert.match((await page.getByRole("alert").textContent()) ?? "", /not known/);
          await page.getByLabel("Code").fill(user_code);
          await click(page, "Continue");
        }
        await page.getByText("Enter the code").waitFor();
        assert.equal(await page.getByLabel("Code").inputValue(), user_code);
        await click(page, "Continue");
        await page.getByText(user_code).waitFor();
        await click(page, "Yes, continue");
        await fillSignIn(page, email);
        await click(page, "Allow");
        await heading(page, "You are signed in");
        const tokens = await post("/oauth/token", { grant_type: DEVICE_GRANT, client_id: "service", device_code });
        assert.ok(tokens.access_token, JSON.stringify(tokens));
      });
  });

  test("somebody signs in at another provider and comes back by the address that is registered there", () =>
    person(async (page) => {
      other.who.next = { sub: "ann", email: "ann@corp.test", email_verified: true };
      await page.goto(authorizeUrl(platform.url, { redirect_uri: callback }));
      await click(page, "Sign in with Corp");
      await heading(page, "Allow access?");
      assert.match((await page.locator("main").textContent()) ?? "", /ann@corp\.test/);
      await click(page, "Allow");
      await page.waitForURL((url) => url.pathname === "/done");
    }));

  test("signing out ends the session", () =>
    person(async (page) => {
      await signInAt(page, platform.url, email);
      await page.goto(authorizeUrl(platform.url));
      await heading(page, "Allow access?");
      await page.goto(`${platform.url}/oauth/sign-out`);
      assert.ok(((await page.locator("main").textContent()) ?? "").includes(email));
      await click(page, "Sign out");
      await heading(page, "You are signed out");
      await page.goto(authorizeUrl(platform.url));
      await heading(page, "Sign in");
    }));

  test("every page has its guards, and the guides are at the pages' address", () =>
    person(async (page) => {
      for (const path of ["/oauth/device", "/oauth/sign-out", "/docs", authorizeUrl("")]) {
        const shown = await page.goto(platform.url + path);
        const headers = shown?.headers() ?? {};
        assert.equal(new URL(page.url()).origin, platform.app.pagesUrl, path);
        assert.equal(headers["cross-origin-opener-policy"], "same-origin", path);
        assert.match(headers["content-security-policy"] ?? "", /frame-ancestors 'none'/, path);
      }
      const workload = await page.goto(`${platform.app.pagesUrl}/main/agents/anything`);
      assert.equal(workload?.status(), 404);
      assert.match((await workload?.text()) ?? "", /There is nothing at/);
    }));

  test("a sign-in whose time is over says what to do", () =>
    person(async (page) => {
      await page.goto(authorizeUrl(platform.url));
      await page.context().clearCookies();
      await fillSignIn(page, email, PASSWORD);
      await heading(page, "Start again");
    }));
});
