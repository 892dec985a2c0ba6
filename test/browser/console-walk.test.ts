/**
 * Every kind in a real browser: its empty list, form, list, page, and a name that does not exist, in both
 * themes and widths, each without a violation of accessibility and without an error of the page.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { KINDS } from "../../console/generated/kinds.ts";
import { createPlaces } from "../../console/lib/places.ts";
import { EVERY_KIND } from "../every-kind.ts";
import { LONG } from "../long.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { openChromium } from "./chromium.ts";
import { look, visitConsole } from "./console-visit.ts";

const skip = LONG ? false : "npm run test:long has it";
const chromium = skip === false ? await openChromium() : null;

describe("every kind in the console", { skip: skip || chromium?.skip }, () => {
  const places = createPlaces("", KINDS);
  let platform: TestPlatform;
  before(async () => {
    platform = await startTestPlatform();
  });
  after(async () => {
    await chromium?.close();
    await platform?.stop();
  });

  for (const kind of KINDS) {
    const specimen = EVERY_KIND.find((one) => one.kind === kind.name);
    const containers =
      specimen?.collection
        .split("/")
        .slice(1)
        .filter((_, at) => at % 2 === 1) ?? [];
    const collection = {
      kind,
      parents: kind.within === null ? [] : containers.slice(0, places.lineOf(kind).length - 1),
    };
    test(kind.plural, async () => {
      if (chromium === null) return;
      await visitConsole(chromium, (await platform.app.consoleLink()) ?? "", platform.url, async (page) => {
        const open = async (path: string): Promise<void> => {
          await page.goto(platform.app.pagesUrl + path);
          await page.getByRole("heading", { level: 1 }).waitFor();
          await page.getByRole("progressbar", { name: "Loading" }).waitFor({ state: "detached" });
          await look(page);
        };
        await open(places.list("main", collection));
        if (kind.verbs.includes("create")) await open(places.create("main", collection));
        if (kind.verbs.includes("get")) await open(places.item("main", collection, "no-such-name"));
        if (specimen === undefined) return;
        const { collection: path, query = "", body } = specimen;
        const made = await platform.call("POST", `${path}${query}`, { workspace: "main", body });
        // The fake machine lacks what some kinds need; their pages are walked empty.
        if (made.status >= 400) return;
        await open(places.list("main", collection));
        if (kind.verbs.includes("get") && specimen.name !== undefined)
          await open(places.item("main", collection, specimen.name));
      });
    });
  }

  test("every kind has a specimen or is made by the platform", () => {
    const without = KINDS.filter(({ name }) => !EVERY_KIND.some(({ kind }) => kind === name)).map(({ name }) => name);
    assert.deepEqual(without, ["scheduleexecution"]);
  });
});
