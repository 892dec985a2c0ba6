/** First paint, a usable list, and how soon the page answers to a key. */
import type { Page } from "playwright-core";
import type { Figure } from "./report.ts";
import { median, p95, untilFrame, type Visit } from "./visit.ts";

const LOADS = 9;
const KEYS = 40;
const ROW = "tbody tr td.name, tbody tr td";

export async function figuresOfPages({ page, open }: Visit, staticUrl: string): Promise<Figure[]> {
  const consolePaints: number[] = [];
  const consoleRows: number[] = [];
  const staticPaints: number[] = [];
  const staticRows: number[] = [];
  // In turn, so that the machine is the same for both.
  for (let load = 0; load < LOADS; load += 1) {
    await open("drives");
    consoleRows.push(await rowsAfterLoad(page));
    consolePaints.push(await firstPaint(page));
    await page.goto(staticUrl);
    staticRows.push(await rowsAfterLoad(page));
    staticPaints.push(await firstPaint(page));
  }
  return [
    {
      ...{ what: "first paint, median", value: median(consolePaints), reference: median(staticPaints) },
      ...{ limit: 1.5, limitIsRatio: true },
    },
    { what: "usable list after a load, median", value: median(consoleRows), reference: median(staticRows), limit: 250 },
    { what: "key to frame in a filter, p95", value: await keys({ page, open }), limit: 50 },
  ];
}

const firstPaint = (page: Page): Promise<number> =>
  page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN");

/** From the beginning of the navigation to the frame with rows. */
async function rowsAfterLoad(page: Page): Promise<number> {
  await untilFrame(page, "", `document.querySelector(${JSON.stringify(ROW)}) !== null`);
  return page.evaluate("performance.now()");
}

async function keys({ page, open }: Pick<Visit, "page" | "open">): Promise<number> {
  await open("drives");
  const box = page.getByRole("searchbox");
  await box.waitFor();
  const times: number[] = [];
  for (let key = 0; key < KEYS; key += 1)
    times.push(
      await untilFrame(
        page,
        `const box = document.querySelector("input[type=search]");
         const want = "drive-${key}";
         Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(box, want);
         box.dispatchEvent(new InputEvent("input", { bubbles: true }))`,
        `new URL(location).searchParams.get("q") === "drive-${key}"`,
      ),
    );
  return p95(times);
}
