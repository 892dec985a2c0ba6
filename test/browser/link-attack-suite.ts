/** What others try with somebody's link: from another site, in a frame, in another browser, twice, with HTML in names. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { randomWord } from "../../src/lib/ids.ts";
import { authorizeUrl, fillSignIn, PASSWORD, signInAt } from "./people.ts";
import { click, fillNewPassword, heading, mainText, type Scene } from "./scene.ts";

/** The one form of a link's page, as a script in the page sees it. */
interface InPage {
  document: { forms: [{ action: string; elements: { secret: { value: string } } }] };
}

const someone = (): string => `target-${randomWord(8)}@example.test`;

export function linkAttackSuite(scene: () => Scene): void {
  describe("a link in the wrong hands", () => {
    const isKnown = async (email: string): Promise<boolean> =>
      (await scene().platform.app.store.people.getUser(email)) !== null;
    const secretOn = (page: Page): Promise<string> => page.locator('input[name="secret"]').first().inputValue();

    test("another site can send none of the forms, and shows no page in a frame", () =>
      scene().person(async (page) => {
        const { pages, invite, email: admin } = scene();
        const email = someone();
        const link = await invite(email);
        await page.goto(link);
        await heading(page, "Join main");
        const [at, secret] = [page.url(), await secretOn(page)];
        await signInAt(page, pages, admin);
        const fields = { secret, step: "join", password: PASSWORD, again: PASSWORD, token: link.split("#")[1] ?? "" };
        await using site = await evilSite();
        for (const target of [at, `${pages}/oauth/link`, `${pages}/oauth/account`, `${pages}/oauth/account/password`]) {
          site.html = `<form method="post" action="${target}">${Object.entries(fields)
            .map(([name, value]) => `<input name="${name}" value="${value}">`)
            .join("")}<button>send</button></form>`;
          await page.goto(site.url);
          await click(page, "send");
          await page.getByText("sent from somewhere else").waitFor();
        }
        assert.equal(await isKnown(email), false);
        site.html = `<iframe src="${link}"></iframe><iframe src="${at}"></iframe><iframe src="${pages}/oauth/account"></iframe>`;
        await page.goto(site.url, { waitUntil: "load" });
        for (const frame of page.frames().slice(1))
          assert.doesNotMatch(await frame.content(), /Join main|Your account|Open your link/);
      }));

    test("the page of a link belongs to the browser that opened it", async () => {
      const { person, invite } = scene();
      const [mine, theirs] = [someone(), someone()];
      await person(async (victim) => {
        await victim.goto(await invite(mine));
        await heading(victim, "Join main");
        await person(async (thief) => {
          await thief.goto(victim.url());
          await heading(thief, "Open the link again");
          await thief.goto(await invite(theirs));
          await heading(thief, "Join main");
          // The thief's own form, sent to the victim's page, and with the victim's secret.
          const secrets = [await secretOn(thief), await secretOn(victim)];
          const own = thief.url();
          for (const secret of secrets) {
            await thief.goto(own);
            await thief.evaluate(
              ([action, value]) => {
                const [form] = (globalThis as unknown as InPage).document.forms;
                form.action = action;
                form.elements.secret.value = value;
              },
              [victim.url(), secret] as const,
            );
            await fillNewPassword(thief, PASSWORD);
            await click(thief, "Join");
            await heading(thief, "Open the link again");
          }
        });
        assert.equal(await isKnown(mine), false);
        // The victim is lured into sending the secret of another page: the page is shown again, and nothing happens.
        await victim.evaluate(() => {
          const [form] = (globalThis as unknown as InPage).document.forms;
          form.elements.secret.value = "x".repeat(43);
        });
        await fillNewPassword(victim, PASSWORD);
        await click(victim, "Join");
        await heading(victim, "Join main");
        assert.equal(await isKnown(mine), false);
      });
    });

    test("of two browsers that have opened one link, one gets in", async () => {
      const { person, invite } = scene();
      const email = someone();
      const link = await invite(email);
      await person((first) =>
        person(async (second) => {
          for (const [page, password] of [
            [first, PASSWORD],
            [second, "the password of a thief"],
          ] as const) {
            await page.goto(link);
            await heading(page, "Join main");
            await fillNewPassword(page, password);
          }
          await click(first, "Join");
          await heading(first, "You are in main");
          await click(second, "Join");
          await heading(second, "This link does not work");
          await second.goto(`${scene().pages}/oauth/account`);
          await fillSignIn(second, email, "the password of a thief");
          assert.match((await second.getByRole("alert").textContent()) ?? "", /not the right email and password/);
        }),
      );
    });

    test("names with HTML in them are text", () =>
      scene().person(async (page) => {
        const { platform, invite } = scene();
        const html = "<script>document.title=1</script><img src=x>";
        const named = await platform.call("PUT", "/workspaces/main", { body: { displayName: html } });
        assert.equal(named.body.displayName, html);
        try {
          await page.goto(await invite(someone()));
          await heading(page, `Join ${html}`);
          assert.equal(await page.locator("img, script").count(), 0);
          assert.equal(await page.title(), `Join ${html}`);
          await fillNewPassword(page, PASSWORD);
          await click(page, "Join");
          await heading(page, `You are in ${html}`);
          assert.equal(await page.locator("img, script").count(), 0);
        } finally {
          await platform.call("PUT", "/workspaces/main", { body: { displayName: "" } });
        }
      }));

    test("signing in leads to pages of the platform and nowhere else, and gives the pages' client no token", () =>
      scene().person(async (page) => {
        const { pages, email } = scene();
        await page.goto(`${pages}/oauth/account`);
        const asked = new URL(page.url());
        await fillSignIn(page, email);
        await heading(page, "Your account");
        assert.match(asked.pathname, /^\/oauth\/interaction\//);
        for (const state of [
          "https://evil.test/",
          "//evil.test",
          "/oauth/link/../../evil",
          "javascript:alert(1)",
          "",
        ]) {
          await page.goto(`${pages}/oauth/arrived?${new URLSearchParams({ state })}`);
          assert.equal(page.url(), `${pages}/oauth/account`, state);
        }
        const client_id = `${BRAND}-console`;
        for (const more of [
          { client_id, response_type: "none", redirect_uri: "https://evil.test/oauth/arrived" },
          { client_id, response_type: "code", redirect_uri: `${pages}/oauth/arrived` },
        ]) {
          await page.goto(authorizeUrl(pages, more));
          const { origin, searchParams } = new URL(page.url());
          assert.equal(origin, pages);
          assert.equal(searchParams.get("code"), null);
          assert.doesNotMatch(await mainText(page), /Allow access/);
        }
      }));
  });
}

/** The platform's own word in the test's configuration. */
const BRAND = "service";

async function evilSite() {
  const site = {
    html: "",
    url: "",
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  const server = createServer((_request, response) =>
    response.setHeader("content-type", "text/html").end(`<!doctype html><title>evil</title>${site.html}`),
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  site.url = `http://evil.test:${(server.address() as AddressInfo).port}/`;
  return site;
}
