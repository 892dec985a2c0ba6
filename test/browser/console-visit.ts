/** A visit to the console with a real browser: whatever the page complains about, or asks of others, fails the test. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { LONG } from "../long.ts";
import type { Chromium } from "./chromium.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function visitConsole(
  chromium: Chromium,
  link: string,
  publicUrl: string,
  work: (page: Page) => Promise<void>,
  /** What the browser notes of an attack that it refused. */
  refused: RegExp | null = null,
): Promise<void> {
  const { page, context } = await chromium.person();
  const wrong: string[] = [];
  const own = [new URL(link).origin, publicUrl, publicUrl.replace(/^http/, "ws"), "null"];
  // A refusal of the API is shown in the page, and noted by the browser too.
  const isNote = (text: string): boolean =>
    /responded with a status of 4\d\d/.test(text) || refused?.test(text) === true;
  page.on("console", (message) => {
    if (message.type() === "error" && !isNote(message.text())) wrong.push(message.text());
  });
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("request", (request) => {
    // What a preview in a frame asks for is its own; the policy of the console decides which frames there are.
    const isPreview =
      request.frame() !== page.mainFrame() && /\.preview\.localhost$/.test(new URL(request.url()).hostname);
    if (!isPreview && !own.includes(new URL(request.url()).origin)) wrong.push(`asked ${request.url()}`);
  });
  try {
    await page.goto(link);
    await heading(page, "Home"); // a page that is left earlier has not signed in yet
    await work(page);
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
  }
}

export const heading = (page: Page, name: string): Promise<void> =>
  page.getByRole("heading", { level: 1, name, exact: true }).waitFor();

const LOOKS = [
  [390, "light"],
  [1280, "dark"],
  [390, "dark"],
  [1280, "light"],
] as const;
const DESK = { width: 1280, height: 800 };
let looks = 0;

/**
 * No violation at all, on a telephone and at a desk, in the light and in the dark: in the long run all four for every
 * page, else the first two in turn.
 */
export async function look(page: Page): Promise<void> {
  looks += 1;
  for (const [width, colorScheme] of LONG ? LOOKS : [LOOKS[looks % 2 === 0 ? 0 : 1]]) {
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
  await page.setViewportSize(DESK);
}
