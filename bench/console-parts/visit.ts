/** A signed-in browser for measurements. Times are taken inside the page, from the event to the frame that shows it. */
import type { Page } from "playwright-core";
import type { Chromium } from "../../test/browser/chromium.ts";
import type { TestPlatform } from "../../test/platform.ts";
import { percentiles } from "../measure.ts";

export interface Visit {
  page: Page;
  platform: TestPlatform;
  /** Below the workspace. */
  open(path: string): Promise<void>;
}

export async function openVisit(chromium: Chromium, platform: TestPlatform): Promise<Visit> {
  const { page } = await chromium.person();
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto((await platform.app.consoleLink()) ?? "");
  await page.getByRole("heading", { level: 1 }).waitFor();
  return {
    ...{ page, platform },
    open: async (path) => {
      await page.goto(`${platform.app.pagesUrl}/main/${path}`);
    },
  };
}

export const median = (times: number[]): number => percentiles(times).p50Ms;
export const p95 = (times: number[]): number => percentiles(times).p95Ms;

/**
 * Runs `start` in the page, then waits for the frame in which `isDone` holds; both are expressions. Answers with the
 * milliseconds between.
 */
export const untilFrame = (page: Page, start: string, isDone: string): Promise<number> =>
  page.evaluate(`new Promise((resolve, reject) => {
    const began = performance.now();
    const look = () => {
      if (${isDone}) return requestAnimationFrame(() => resolve(performance.now() - began));
      if (performance.now() - began > 60000) return reject(new Error(${JSON.stringify(isDone)} + " did not come"));
      requestAnimationFrame(look);
    };
    ${start};
    look();
  })`);

/** Starts to note tasks that take longer than 50 ms; the function answers with the longest, 0 for none. */
export async function watchLongTasks(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(`
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
    }).observe({ type: "longtask", buffered: false });
  `);
  return () => page.evaluate("window.longest");
}
