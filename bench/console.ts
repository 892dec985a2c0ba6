/**
 * The console in a real Chromium, each figure beside its limit and, where that makes sense, beside the same for a static
 * page of the same size. A figure over its limit is a failure.
 *
 *   npm run bench -- console                 all of it; a million drives are written first, which takes minutes
 *   npm run bench -- console --rows=10000    a shorter list
 *   npm run bench -- console --sizes         only the sizes of the bundle
 */
import { openChromium } from "../test/browser/chromium.ts";
import { startTestPlatform } from "../test/platform.ts";
import { figuresOfLists } from "./console-parts/lists.ts";
import { figuresOfPages } from "./console-parts/pages.ts";
import { reportFigures } from "./console-parts/report.ts";
import { figuresOfServer } from "./console-parts/server.ts";
import { sizes } from "./console-parts/sizes.ts";
import { startStaticPage } from "./console-parts/static-page.ts";
import { openVisit } from "./console-parts/visit.ts";
import { figuresOfWorkloads } from "./console-parts/workloads.ts";
import { fill } from "./control-plane-parts/lists.ts";

const ROWS = 1_000_000;

export async function run(flags: string[]): Promise<void> {
  const firstBytes = await sizes();
  if (flags.includes("--sizes")) return;
  const rows = Number(flags.find((flag) => flag.startsWith("--rows="))?.slice("--rows=".length) ?? ROWS);
  const chromium = await openChromium();
  if (chromium.skip !== false) {
    console.log(`The figures of the browser are left out: ${chromium.skip}.`);
    return;
  }
  await using platform = await startTestPlatform({ driver: "real" });
  await using page = await startStaticPage(firstBytes);
  try {
    const started = performance.now();
    await fill(platform.app.store, 0, rows);
    console.log(`${rows} drives written in ${Math.round((performance.now() - started) / 1000)} s`);
    const server = await figuresOfServer();
    const visit = await openVisit(chromium, platform);
    reportFigures([
      ...(await figuresOfPages(visit, page.url)),
      ...(await figuresOfLists(visit, rows)),
      ...(await figuresOfWorkloads(visit)),
      ...server,
    ]);
  } finally {
    await chromium.close();
  }
}
