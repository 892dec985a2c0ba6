/** An invited person opens the link, sees what it is, and is in: with a new password, an account, or another provider. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { makeLink } from "../../src/auth/links/link-tokens.ts";
import { randomWord } from "../../src/lib/ids.ts";
import { DAY_MS } from "../../src/lib/time/clock.ts";
import { fillSignIn, PASSWORD, signInAt } from "./people.ts";
import { assertWrong, click, fillNewPassword, follow, heading, look, mainText, type Scene } from "./scene.ts";

const someone = (): string => `guest-${randomWord(8)}@example.test`;

export function invitationSuite(scene: () => Scene): void {
  describe("an invitation", () => {
    const roleOf = async (email: string) => {
      const { people } = scene().platform.app.store;
      const user = await people.getUser(email);
      return user && people.roleIn("main", user.sub);
    };

    test("somebody new chooses a password and is in; the token is in no request line, no Referer and no file", () =>
      scene().person(async (page) => {
        const { invite, platform } = scene();
        const email = someone();
        const link = await invite(email, { role: "admin" });
        const token = link.split("#")[1] ?? "";
        const seen: string[] = [];
        page.on("request", (request) => seen.push(`${request.url().split("#")[0]} ${request.headers().referer}`));
        await page.goto(link);
        await heading(page, "Join main");
        for (const part of ["admin@berth.local", email, "as an admin"])
          assert.ok((await mainText(page)).includes(part), part);
        await look(page, "invitation");
        await fillNewPassword(page, "short");
        await click(page, "Join");
        await assertWrong(page, "New password", /at least 10/);
        await fillNewPassword(page, PASSWORD, "something else");
        await click(page, "Join");
        await assertWrong(page, "The same again", /not the same/);
        await look(page, "invitation-wrong");
        await fillNewPassword(page, PASSWORD);
        await click(page, "Join");
        await heading(page, "You are in main");
        await look(page, "invitation-joined");
        assert.equal(await roleOf(email), "admin");
        await follow(page, "Your account");
        await heading(page, "Your account");
        assert.ok((await mainText(page)).includes(email));
        assert.ok(seen.length > 3 && seen.every((line) => !line.includes(token)), seen.join("\n"));
        for (const file of filesBelow(platform.dataDir)) assert.ok(!readFileSync(file).includes(token), file);
        await page.goto(link);
        await heading(page, "This link does not work");
        assert.match(await mainText(page), /has been used/);
        await look(page, "link-used");
      }));

    test("somebody who has an account signs in on the way, also where somebody else is signed in", () =>
      scene().person(async (page) => {
        const { invite, colleague, pages, email: admin } = scene();
        const { email } = await colleague();
        await signInAt(page, pages, admin);
        await page.goto(await invite(email));
        assert.ok((await mainText(page)).includes(`signed in as ${admin}`));
        assert.equal(await page.getByRole("button", { name: "Join" }).count(), 0, "not for whoever is signed in");
        await look(page, "invitation-known");
        await follow(page, "Sign in to join");
        await heading(page, "Sign in");
        assert.equal(await page.getByLabel("Email").inputValue(), email);
        await fillSignIn(page, email);
        await heading(page, "Join main");
        await look(page, "invitation-here");
        await click(page, "Join");
        await heading(page, "You are in main");
        assert.equal(await roleOf(email), "member");
      }));

    test("somebody who signs in as another person than the invited does not get in", () =>
      scene().person(async (page) => {
        const { invite, colleague } = scene();
        const [invited, other] = [await colleague(), await colleague()];
        await page.goto(await invite(invited.email));
        await follow(page, "Sign in to join");
        await fillSignIn(page, other.email);
        await heading(page, "Join main");
        assert.ok((await mainText(page)).includes(`signed in as ${other.email}`));
        assert.equal(await page.getByRole("button", { name: "Join" }).count(), 0);
        assert.deepEqual([await roleOf(invited.email), await roleOf(other.email)], [null, null]);
      }));

    test("somebody new signs in with another provider instead", () =>
      scene().person(async (page) => {
        const { invite, other } = scene();
        const email = someone();
        other.who.next = { sub: email, email, email_verified: true };
        await page.goto(await invite(email));
        await follow(page, "Sign in with Corp instead");
        await click(page, "Sign in with Corp");
        await heading(page, "Join main");
        await click(page, "Join");
        await heading(page, "You are in main");
        assert.equal(await roleOf(email), "member");
      }));

    test("somebody says no, and the invitation is gone", () =>
      scene().person(async (page) => {
        const email = someone();
        const link = await scene().invite(email);
        await page.goto(link);
        await click(page, "Decline");
        await heading(page, "You have declined");
        await look(page, "invitation-declined");
        const { body } = await scene().platform.call("GET", "/users", { workspace: "main" });
        assert.ok(!body.some((one: { email: string }) => one.email === email));
      }));

    test("a link that is withdrawn, replaced, of a lesser role, over or mistyped says so", () =>
      scene().person(async (page) => {
        const { invite, platform, pages } = scene();
        const email = someone();
        const first = await invite(email);
        const second = await invite(email);
        const refused = async (link: string, text: RegExp): Promise<void> => {
          await page.goto("about:blank");
          await page.goto(link);
          await heading(page, "This link does not work");
          assert.match(await mainText(page), text);
        };
        await refused(first, /newer one has replaced it/);
        const path = `/users/${email}`;
        const raised = await platform.call("PUT", path, { body: { role: "admin" }, workspace: "main" });
        await refused(second, /newer one has replaced it/);
        await page.goto("about:blank");
        await page.goto(raised.body.url);
        await heading(page, "Join main");
        assert.match(await mainText(page), /as an admin/);
        const { store } = platform.app;
        const [open] = await store.people.listInvitations({ email });
        const longAgo = { store, clock: { now: () => Date.now() - 4 * DAY_MS } };
        const old = await makeLink(longAgo, pages, { purpose: "invitation", invitation: open?.id ?? "" });
        await refused(old.url, /time of this link is over/);
        await platform.call("DELETE", path, { workspace: "main" });
        await refused(second, /withdrawn/);
        await refused(`${second.slice(0, -2)}xx`, /does not know this link/);
        await page.goto(`${pages}/oauth/link`);
        await look(page, "link-entry");
        await page.getByLabel("Code").fill(second);
        await click(page, "Continue");
        await heading(page, "This link does not work");
      }));
  });
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).isFile());
}
