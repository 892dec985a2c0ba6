/**
 * The console in a real Chromium, each figure beside its limit and, where that makes sense, beside the same for a static
 * page of the same size. A figure over its limit is a failure.
 *
 *   npm run bench -- console                 all of it; a million drives are written first, which takes minutes
 *   npm run bench -- console --rows=10000    a shorter list
 *   npm run bench -- console --part=terminal only some figures: pages, lists, logs, tasks, terminal, server; may be repeated
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
import { figuresOfWorkloads, WORKLOAD_PARTS } from "./console-parts/workloads.ts";
import { fill } from "./control-plane-parts/lists.ts";

const ROWS = 1_000_000;
const PARTS: readonly string[] = ["pages", "lists", ...WORKLOAD_PARTS, "server"];

export async function run(flags: string[]): Promise<void> {
  const firstBytes = await sizes();
  if (flags.includes("--sizes")) return;
  const named = valuesOf(flags, "part");
  const unknown = named.find((part) => !PARTS.includes(part));
  if (unknown !== undefined) throw new Error(`there is no part ${unknown}; there are ${PARTS.join(", ")}`);
  const has = (part: string): boolean => named.length === 0 || named.includes(part);
  const rows = Number(valuesOf(flags, "rows")[0] ?? ROWS);
  const chromium = await openChromium();
  if (chromium.skip !== false) {
    console.log(`The figures of the browser are left out: ${chromium.skip}.`);
    return;
  }
  await using platform = await startTestPlatform({ driver: "real" });
  await using page = await startStaticPage(firstBytes);
  try {
    if (has("pages") || has("lists")) {
      const started = performance.now();
      await fill(platform.app.store, 0, rows);
      console.log(`${rows} drives written in ${Math.round((performance.now() - started) / 1000)} s`);
    }
    const server = has("server") ? await figuresOfServer() : [];
    const visit = await openVisit(chromium, platform);
    reportFigures([
      ...(has("pages") ? await figuresOfPages(visit, page.url) : []),
      ...(has("lists") ? await figuresOfLists(visit, rows) : []),
      ...(await figuresOfWorkloads(visit, WORKLOAD_PARTS.filter(has))),
      ...server,
    ]);
  } finally {
    await chromium.close();
  }
}

/** The values of `--name=value`, which may be given several times. */
const valuesOf = (flags: readonly string[], name: string): string[] =>
  flags.filter((flag) => flag.startsWith(`--${name}=`)).map((flag) => flag.slice(name.length + 3));
