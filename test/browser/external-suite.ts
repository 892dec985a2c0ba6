/** Signing in with another provider: the first time, as somebody who is known, refused, and once more after a failure. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { authorizeUrl, fillSignIn } from "./people.ts";
import { click, follow, heading, look, mainText, type Scene } from "./scene.ts";

export function externalSuite(scene: () => Scene): void {
  describe("another provider", () => {
    test("knows somebody new, who comes back by the address that is registered there", () =>
      scene().person(async (page) => {
        const { platform, other, callback } = scene();
        other.who.next = { sub: "ann", email: "ann@corp.test", email_verified: true };
        await page.goto(authorizeUrl(platform.url, { redirect_uri: callback }));
        await look(page, "sign-in");
        await click(page, "Sign in with Corp");
        await heading(page, "Allow access?");
        assert.match(await mainText(page), /ann@corp\.test/);
        await click(page, "Allow");
        await page.waitForURL((url) => url.pathname === "/done");
      }));

    test("knows somebody of the account, who stays the same person", () =>
      scene().person(async (page) => {
        const { platform, other, colleague, pages } = scene();
        const { sub, email } = await colleague();
        other.who.next = { sub: `corp-${sub}`, email, email_verified: true };
        await page.goto(`${pages}/oauth/account`);
        await click(page, "Sign in with Corp");
        await heading(page, "Your account");
        assert.ok((await mainText(page)).includes(email));
        const identity = { issuer: other.issuer, subject: `corp-${sub}` };
        assert.equal(await platform.app.store.externalIdentities.find(identity), sub);
      }));

    test("has not verified an address: refused with the reason, and back to another way", () =>
      scene().person(async (page) => {
        const { other, colleague, pages } = scene();
        const { email } = await colleague();
        other.who.next = { sub: "mallory", email, email_verified: false };
        await page.goto(`${pages}/oauth/account`);
        await click(page, "Sign in with Corp");
        await heading(page, "You were not let in");
        assert.match(await mainText(page), /Corp has not verified your email address/);
        await look(page, "sign-in-refused");
        await follow(page, "Back to sign-in");
        await fillSignIn(page, email);
        await heading(page, "Your account");
      }));

    test("says no, and does not answer; the next try is a new one", () =>
      scene().person(async (page) => {
        const { other, pages } = scene();
        other.who.next = { sub: "ann", email: "ann@corp.test", email_verified: true };
        await page.goto(`${pages}/oauth/account`);
        try {
          other.lie = (request, response) => {
            const asked = new URL(request.url ?? "/", other.issuer);
            const back = asked.searchParams.get("redirect_uri");
            if (asked.pathname !== "/auth" || back === null) return false;
            const answer = new URLSearchParams({
              error: "access_denied",
              state: asked.searchParams.get("state") ?? "",
            });
            response.writeHead(302, { location: `${back}?${answer}` }).end();
            return true;
          };
          await click(page, "Sign in with Corp");
          await heading(page, "You were not let in");
          await follow(page, "Back to sign-in");
          other.lie = (request, response) => {
            if (!request.url?.startsWith("/token")) return false;
            response.writeHead(500).end("down");
            return true;
          };
          await click(page, "Sign in with Corp");
          await heading(page, "That did not work");
          await look(page, "sign-in-provider-failed");
          await follow(page, "Back to sign-in");
        } finally {
          other.lie = null;
        }
        await click(page, "Sign in with Corp");
        await heading(page, "Your account");
      }));
  });
}
