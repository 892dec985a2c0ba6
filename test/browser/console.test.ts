/** The console in a real browser: the first visit, and one flow through each general page. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { openChromium } from "./chromium.ts";
import { fillSignIn, makeAdmin } from "./people.ts";

const chromium = await openChromium();
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe("the console", { skip: chromium.skip }, () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startTestPlatform();
  });
  after(async () => {
    await chromium.close();
    await platform.stop();
  });

  /** A browser that has opened a link; whatever it complains about, or asks of others, fails the test. */
  async function visit(work: (page: Page) => Promise<void>, link = platform.app.consoleLink()): Promise<void> {
    const { page, context } = await chromium.person();
    const wrong: string[] = [];
    // A refusal of the API is shown in the page, and noted by the browser too.
    const isNote = (text: string): boolean => /responded with a status of 4\d\d/.test(text);
    page.on("console", (message) => {
      if (message.type() === "error" && !isNote(message.text())) wrong.push(message.text());
    });
    page.on("pageerror", (error) => wrong.push(error.message));
    page.on("request", (request) => {
      const { origin } = new URL(request.url());
      if (![platform.app.pagesUrl, platform.url, "null"].includes(origin)) wrong.push(`asked ${request.url()}`);
    });
    try {
      await page.goto((await link) ?? "");
      await work(page);
      assert.deepEqual(wrong, []);
    } finally {
      await context.close();
    }
  }

  const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();

  /** No violation at all, on a telephone and on a desk, in light and in dark. */
  async function look(page: Page): Promise<void> {
    for (const [width, colorScheme] of [
      [390, "light"],
      [1280, "dark"],
    ] as const) {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      assert.equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false, `${width} px`);
      // Outside of the page's policy, as an extension would be.
      const session = await page.context().newCDPSession(page);
      await session.send("Runtime.evaluate", { expression: AXE });
      const { result } = await session.send("Runtime.evaluate", {
        expression:
          "axe.run().then(({ violations }) => JSON.stringify(violations.map(({ id, nodes }) => [id, nodes[0].html])))",
        awaitPromise: true,
        returnByValue: true,
      });
      assert.equal(result.value, "[]", `${page.url()}, ${width} px, ${colorScheme}`);
      await session.detach();
    }
  }

  test("the printed link opens it signed in, once, and leaves no secret in the address", async () => {
    const link = (await platform.app.consoleLink()) ?? "";
    await visit(async (page) => {
      await heading(page, "Home");
      assert.equal(page.url(), `${platform.app.pagesUrl}/main`);
      await page.reload();
      await heading(page, "Home");
      await look(page);
    }, Promise.resolve(link));
    const { page, context } = await chromium.person();
    await page.goto(link);
    await page.getByText("This link was used already").waitFor();
    await context.close();
  });

  test("without a link a person signs in with a password, and out again", async () => {
    const { email } = await makeAdmin(platform);
    const { page, context } = await chromium.person();
    await page.goto(platform.app.pagesUrl);
    await page.getByRole("link", { name: "Sign in", exact: true }).click();
    await fillSignIn(page, email);
    await heading(page, "Home");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL((url) => url.pathname.startsWith("/oauth/"));
    await page.goto(platform.app.pagesUrl);
    await page.getByText("This browser is not signed in.").waitFor();
    await context.close();
  });

  test("a model is made with a form, found in its list, changed as YAML and deleted, by keyboard", () =>
    visit(async (page) => {
      await heading(page, "Home");
      await page.keyboard.press("g");
      await page.keyboard.press("m");
      await heading(page, "Models");
      await page.getByText("No models yet").waitFor();
      await look(page);
      await page.keyboard.press("c");
      await page.getByLabel("Name", { exact: true }).fill("UPPER case");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").waitFor();
      await page.getByLabel("Name", { exact: true }).fill("first");
      await look(page);
      await page.keyboard.press("Enter");
      await heading(page, "first");
      await look(page);
      await page.getByRole("link", { name: "YAML" }).click();
      await page.getByRole("textbox", { name: "first as YAML" }).click();
      await page.keyboard.press("Control+End");
      await page.keyboard.type("x: 1");
      await page.getByRole("button", { name: "Discard" }).click();
      await look(page);
      await page.goto(`${platform.app.pagesUrl}/main/models?q=fir`);
      await page.getByRole("link", { name: "first" }).waitFor();
      await look(page);
      await page.getByLabel("Pick first").check();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await page.getByText("Nothing matches").waitFor();
    }));

  test("the palette goes anywhere and runs any operation", () =>
    visit(async (page) => {
      await heading(page, "Home");
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Search or run" }).fill("drives");
      await page.keyboard.press("Enter");
      await heading(page, "Drives");
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Search or run" }).fill("workspaceList");
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await page.getByText('"displayName": "main"').waitFor();
      await page.keyboard.press("Escape");
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keys" }).waitFor();
      await look(page);
    }));
});
