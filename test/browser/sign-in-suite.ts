/** A person signs in for a program or a device, with a password. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { authorizeUrl, fillSignIn, PASSWORD, VERIFIER } from "./people.ts";
import { assertWrong, click, heading, look, mainText, type Scene } from "./scene.ts";

const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

export function signInSuite(scene: () => Scene): void {
  describe("signing in", () => {
    test("a wrong password says so, the right one leads on, and a yes gives the program its code", () =>
      scene().person(async (page) => {
        const { platform, email, callback, post } = scene();
        await page.goto(authorizeUrl(platform.url, { redirect_uri: callback }));
        assert.equal(new URL(page.url()).hostname, "console.localhost");
        await fillSignIn(page, email, "not the password");
        await assertWrong(page, "Password", /not the right email and password/);
        await look(page, "sign-in-wrong");
        await fillSignIn(page, email);
        await heading(page, "Allow access?");
        await look(page, "consent");
        const asked = await mainText(page);
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
      scene().person(async (page) => {
        const { platform, email, callback } = scene();
        await page.goto(authorizeUrl(platform.url, { redirect_uri: callback }));
        await fillSignIn(page, email);
        await click(page, "Deny");
        await page.waitForURL((url) => url.pathname === "/done");
        const { searchParams } = new URL(page.url());
        assert.deepEqual([searchParams.get("error"), searchParams.get("code")], ["access_denied", null]);
      }));

    test("two sign-ins in one browser do not get into each other's way", () =>
      scene().person(async (page) => {
        const { platform, email, callback } = scene();
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
        await scene().person(async (page) => {
          const { email, post } = scene();
          const started = await post("/oauth/device/code", { client_id: "service" });
          const { device_code, user_code = "", verification_uri = "", verification_uri_complete = "" } = started;
          await page.goto(isTyped ? verification_uri : verification_uri_complete);
          await heading(page, "Connect a device");
          if (isTyped) {
            await page.getByLabel("Code").fill("AAAA-AAAA");
            await click(page, "Continue");
            await assertWrong(page, "Code", /not known/);
            await look(page, "device-wrong");
            await page.getByLabel("Code").fill(user_code);
            await click(page, "Continue");
          }
          await page.getByText("Enter the code").waitFor();
          assert.equal(await page.getByLabel("Code").inputValue(), user_code);
          await click(page, "Continue");
          await page.getByText(user_code).waitFor();
          await look(page, "device-confirm");
          await click(page, "Yes, continue");
          await fillSignIn(page, email);
          await click(page, "Allow");
          await heading(page, "You are signed in");
          const tokens = await post("/oauth/token", { grant_type: DEVICE_GRANT, client_id: "service", device_code });
          assert.ok(tokens.access_token, JSON.stringify(tokens));
        });
    });

    test("every page has its guards, and the guides are at the pages' address", () =>
      scene().person(async (page) => {
        const { platform } = scene();
        for (const path of [
          "/oauth/device",
          "/oauth/sign-out",
          "/oauth/link",
          "/oauth/account",
          "/docs",
          authorizeUrl(""),
        ]) {
          const shown = await page.goto(platform.url + path);
          const headers = shown?.headers() ?? {};
          assert.equal(new URL(page.url()).origin, platform.app.pagesUrl, path);
          assert.equal(headers["cross-origin-opener-policy"], "same-origin", path);
          assert.match(headers["content-security-policy"] ?? "", /frame-ancestors 'none'/, path);
        }
        const workload = await page.goto(`${platform.app.pagesUrl}/main/agents/anything`);
        const text = (await workload?.text()) ?? "";
        assert.ok(text.includes("/console/assets/"), `the console's own page, whatever a workload is called: ${text}`);
      }));

    test("a sign-in whose time is over says what to do", () =>
      scene().person(async (page) => {
        const { platform, email } = scene();
        await page.goto(authorizeUrl(platform.url));
        await page.context().clearCookies();
        await fillSignIn(page, email, PASSWORD);
        await heading(page, "Start again");
        await look(page, "start-again");
      }));
  });
}
