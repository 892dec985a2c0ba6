/**
 * A real Chromium for tests: the one of this machine, driven by playwright-core, which downloads nothing. Names below
 * `test` lead to this machine; names below `localhost` do so by themselves.
 *
 *   const chromium = await openChromium();
 *   describe("pages", { skip: chromium.skip }, () => { after(() => chromium.close()); … });
 */
import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium as launcher, type Page } from "playwright-core";

/** Far longer than a page takes, also on a busy machine: what waits in vain fails. */
const PATIENCE_MS = 90_000;
const LAUNCH_MS = 120_000;

export const MISSING = "no Chromium found; enable the browser suites with: apt-get install chromium";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

const FLAGS = [
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-dev-shm-usage",
  "--disable-gpu",
  "--host-resolver-rules=MAP *.test 127.0.0.1",
];

export interface Chromium {
  /** Why there is none, for `skip` of a suite; false when there is one. */
  skip: string | false;
  /** A browser of somebody: cookies, storage and workers of its own. */
  person(): Promise<Person>;
  close(): Promise<void>;
}

export interface Person {
  page: Page;
  context: BrowserContext;
}

/** Where the browser is; null when this machine has none. `BERTH_TEST_CHROMIUM` names one, or `none`. */
export function findChromium(): string | null {
  const given = process.env.BERTH_TEST_CHROMIUM;
  if (given === "none") return null;
  return [...(given ? [given] : []), ...PLACES].find((place) => existsSync(place)) ?? null;
}

/** A machine whose Chromium does not start has none. */
export async function openChromium(): Promise<Chromium> {
  const executablePath = findChromium();
  if (executablePath === null) return absent(MISSING);
  let browser: Browser;
  try {
    browser = await launcher.launch({ executablePath, args: FLAGS, chromiumSandbox: false, timeout: LAUNCH_MS });
  } catch (error) {
    return absent(`${executablePath} does not start: ${(error as Error).message.split("\n")[0]}`);
  }
  return {
    skip: false,
    async person() {
      const context = await browser.newContext({ ignoreHTTPSErrors: true });
      context.setDefaultTimeout(PATIENCE_MS);
      return { context, page: await context.newPage() };
    },
    close: () => browser.close(),
  };
}

const absent = (skip: string): Chromium => ({
  skip,
  person: () => Promise.reject(new Error(skip)),
  close: async () => {},
});
