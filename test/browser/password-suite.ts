/** A first password, a lost one, and one that its owner changes. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { makeAccount } from "../identities.ts";
import { fillSignIn, PASSWORD } from "./people.ts";
import { assertWrong, click, fillNewPassword, follow, heading, look, mainText, type Scene } from "./scene.ts";

const NEXT = "another long password";

export function passwordSuite(scene: () => Scene): void {
  describe("a password", () => {
    const linkFor = async (email: string): Promise<string> => {
      const { platform, accountId } = scene();
      const { status, body } = await platform.call("POST", `/accounts/${accountId}/users/${email}/password/link`);
      assert.equal(status, 200, JSON.stringify(body));
      return body.url;
    };
    const openAccount = async (page: Page, email: string, password = PASSWORD): Promise<void> => {
      await page.goto(`${scene().pages}/oauth/account`);
      await fillSignIn(page, email, password);
      await heading(page, "Your account");
    };

    test("somebody whom an admin has added chooses the first one with a link, which works once", () =>
      scene().person(async (page) => {
        const { platform, accountId } = scene();
        const email = "first@example.test";
        await platform.call("POST", `/accounts/${accountId}/users`, { body: { email } });
        const [link, spare] = [await linkFor(email), await linkFor(email)];
        await page.goto(link);
        await heading(page, "Choose a password");
        await look(page, "password-first");
        await fillNewPassword(page, "short");
        await click(page, "Set password");
        await assertWrong(page, "New password", /at least 10/);
        await fillNewPassword(page, PASSWORD);
        await click(page, "Set password");
        await heading(page, "Your password is set");
        await look(page, "password-set");
        await follow(page, "Your account");
        assert.ok((await mainText(page)).includes(email));
        await page.goto(link);
        assert.match(await mainText(page), /has been used/);
        await page.goto("about:blank");
        await page.goto(spare);
        await heading(page, "This link does not work");
        assert.match(await mainText(page), /changed after this link was made/);
      }));

    test("a lost one is replaced with a link; what was signed in before no longer is", async () => {
      const { email } = await scene().colleague();
      await scene().person(async (before) => {
        await openAccount(before, email);
        const link = await linkFor(email);
        await scene().person(async (page) => {
          await page.goto(link);
          await heading(page, "Choose a new password");
          await look(page, "password-lost");
          await fillNewPassword(page, NEXT);
          await click(page, "Set password");
          await heading(page, "Your password is set");
        });
        await before.reload();
        await heading(before, "Sign in");
        await fillSignIn(before, email, NEXT);
        await heading(before, "Your account");
      });
    });

    test("a link of an admin is worth nothing once the person belongs to others, too", () =>
      scene().person(async (page) => {
        const { platform, colleague } = scene();
        const { sub, email } = await colleague();
        const link = await linkFor(email);
        const { store } = platform.app;
        const { workspace } = await makeAccount(store, "strangers");
        await store.write((tx) => store.people.setMember(tx, workspace, sub, "admin"));
        await page.goto(link);
        await heading(page, "This link does not work");
        assert.match(await mainText(page), /belongs to other accounts too/);
      }));

    test("its owner changes it: other browsers and programs are signed out, this browser stays", async () => {
      const { person, colleague, post, platform } = scene();
      const { email } = await colleague();
      await person(async (elsewhere) => {
        await openAccount(elsewhere, email);
        const started = await post("/oauth/device/code", { client_id: "service" });
        await elsewhere.goto(started.verification_uri_complete ?? "");
        await click(elsewhere, "Continue");
        await click(elsewhere, "Yes, continue");
        await click(elsewhere, "Allow");
        await heading(elsewhere, "You are signed in");
        const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
        const tokens = await post("/oauth/token", {
          grant_type,
          client_id: "service",
          device_code: started.device_code,
        });
        const statusNow = async () =>
          (await platform.call("GET", "/workspaces", { key: tokens.access_token ?? "" })).status;
        assert.equal(await statusNow(), 200);
        await person(async (page) => {
          await openAccount(page, email);
          assert.match(await mainText(page), /The command line/);
          await look(page, "account");
          await follow(page, "Change password");
          await heading(page, "Change your password");
          await look(page, "password-change");
          await page.getByLabel("Current password").fill("not the password");
          await fillNewPassword(page, NEXT);
          await click(page, "Change password");
          await assertWrong(page, "Current password", /not your current password/);
          await look(page, "password-change-wrong");
          await page.getByLabel("Current password").fill(PASSWORD);
          await fillNewPassword(page, NEXT);
          await click(page, "Change password");
          await heading(page, "Your password is changed");
          await look(page, "password-changed");
          await follow(page, "Your account");
          await heading(page, "Your account");
          assert.equal(await page.getByRole("listitem").count(), 1, "this browser alone");
        });
        await elsewhere.goto(`${scene().pages}/oauth/account`);
        await heading(elsewhere, "Sign in");
        assert.equal(await statusNow(), 401);
      });
    });

    test("a person sees where they are signed in, and signs another browser out", async () => {
      const { person, colleague } = scene();
      const { email } = await colleague();
      await person(async (lost) => {
        await openAccount(lost, email);
        await person(async (page) => {
          await openAccount(page, email);
          assert.equal(await page.getByRole("listitem").count(), 2);
          await page.getByRole("button", { name: /^Sign out A browser/ }).click();
          await page.getByRole("status").waitFor();
          assert.equal(await page.getByRole("listitem").count(), 1);
        });
        await lost.reload();
        await heading(lost, "Sign in");
      });
    });

    test("somebody who signs in elsewhere has none to change", () =>
      scene().person(async (page) => {
        const { other, pages } = scene();
        other.who.next = { sub: "pia", email: "pia@corp.test", email_verified: true };
        await page.goto(`${pages}/oauth/account`);
        await click(page, "Sign in with Corp");
        await heading(page, "Your account");
        await look(page, "account-without-password");
        await page.goto(`${pages}/oauth/account/password`);
        await heading(page, "You have no password here");
      }));
  });
}
