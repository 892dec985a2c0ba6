/** The API reference in a real browser: everything can be read on a telephone, in light and in dark. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { openChromium } from "./chromium.ts";

const chromium = await openChromium();
const WIDTHS = [390, 1280];

describe("the reference in a browser", { skip: chromium.skip }, () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startTestPlatform();
  });
  after(async () => {
    await chromium.close();
    await platform.stop();
  });

  for (const colorScheme of ["light", "dark"] as const)
    test(`it never scrolls sideways (${colorScheme})`, async (t) => {
      const { page, context } = await chromium.person();
      t.after(() => context.close());
      await page.emulateMedia({ colorScheme });
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        await page.goto(`${platform.app.pagesUrl}/docs`);
        await page.getByText("/v0/agents/{agentName}/revisions", { exact: true }).waitFor();
        await page.getByText("Create a sandbox", { exact: true }).first().click();
        await page.locator("details[open] pre").first().waitFor();
        const measure = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]";
        const [content, window] = await page.evaluate<[number, number]>(measure);
        assert.equal(content, window, `at ${width} pixels`);
      }
    });
});
