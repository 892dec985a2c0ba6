/** Signing out: by oneself, and because a program asks (OpenID Connect RP-Initiated Logout). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { authorizeUrl, signInAt } from "./people.ts";
import { click, follow, heading, look, mainText, type Scene } from "./scene.ts";

export function signOutSuite(scene: () => Scene): void {
  describe("signing out", () => {
    test("ends the session of the browser", () =>
      scene().person(async (page) => {
        const { platform, email } = scene();
        await signInAt(page, platform.url, email);
        await page.goto(authorizeUrl(platform.url));
        await heading(page, "Allow access?");
        await page.goto(`${platform.url}/oauth/sign-out`);
        assert.ok((await mainText(page)).includes(email));
        await look(page, "sign-out");
        await follow(page, "Stay signed in");
        await heading(page, "Your account");
        await follow(page, "Sign out");
        await click(page, "Sign out");
        await heading(page, "You are signed out");
        await look(page, "signed-out");
        await page.goto(authorizeUrl(platform.url));
        await heading(page, "Sign in");
        await page.goto(`${platform.url}/oauth/sign-out`);
        await heading(page, "You are signed out");
      }));

    test("for a program leads back to it, and nowhere else", () =>
      scene().person(async (page) => {
        const { platform, email, callback, post } = scene();
        const registered = await post("/oauth/register", {
          client_name: "My editor",
          redirect_uris: [callback],
          post_logout_redirect_uris: [callback],
        });
        const found = await fetch(`${platform.url}/.well-known/openid-configuration`);
        const { end_session_endpoint: endpoint } = (await found.json()) as { end_session_endpoint: string };
        const signOutUrl = (back: string): string =>
          `${endpoint}?${new URLSearchParams({ client_id: registered.client_id ?? "", post_logout_redirect_uri: back, state: "s9" })}`;
        await signInAt(page, platform.url, email);
        await page.goto(signOutUrl("https://evil.test/"));
        await heading(page, "That did not work");
        await look(page, "sign-out-refused");
        await page.goto(signOutUrl(callback));
        await heading(page, "Sign out?");
        assert.match(await mainText(page), /My editor/);
        await look(page, "sign-out-program");
        for (const isSignedIn of [true, false]) {
          if (isSignedIn) await click(page, "Sign out");
          else await page.goto(signOutUrl(callback));
          await page.waitForURL((url) => url.pathname === "/done");
          assert.equal(new URL(page.url()).searchParams.get("state"), "s9");
        }
        await page.goto(authorizeUrl(platform.url));
        await heading(page, "Sign in");
      }));
  });
}
