/**
 * Every kind and page of the console in a real browser, in both themes and widths: lists that are empty, full, refused
 * and broken, forms, resources with all their tabs, hostile texts in all of them, and the lines that each page offers
 * for other tools. Each is without a violation of accessibility and without an error of the page.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { KINDS } from "../../console/generated/kinds.ts";
import { OPERATIONS } from "../../console/generated/operations.ts";
import type { KindFacts } from "../../console/lib/facts.ts";
import { createPlaces } from "../../console/lib/places.ts";
import { EVERY_KIND, type Specimen } from "../every-kind.ts";
import { LONG } from "../long.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { openChromium } from "./chromium.ts";
import { heading, look, visitConsole } from "./console-visit.ts";
import { assertSame, copiedLines } from "./copied-lines.ts";
import { makeHostile } from "./hostile-answers.ts";

const skip = LONG ? false : "npm run test:long has it";
const chromium = skip === false ? await openChromium() : null;
/** The fake machine has no daemon in its sandboxes, and its workloads do not answer: their tabs say so. */
const UNANSWERED = /status of 50\d|WebSocket connection/;
/** Enough to come in and to see that there is nothing to see. */
const NARROW = ["workspaces:list", "workspaces:get"];
const PAGES = [
  ...["", "-/templates", "-/images", "-/egress", "-/logs?kind=agents", "-/nodes", "-/settings"],
  ...["-/usage", "-/usage?by=resource_name&span=30+days", "-/usage?tab=events", "-/usage?tab=prices"],
  ...["-/access", "-/access?tab=accounts", "-/access?tab=keys", "-/access?tab=sessions", "-/access?tab=sso"],
  "-/access?tab=audit",
];
/** No archive is sent here, so no template has files to begin with. */
const OWN_BODIES: Readonly<Record<string, object>> = { volume: { metadata: { name: "disk" }, spec: { size: 16 } } };
/** Kinds after those that theirs are parts of, or name. */
const IN_ORDER = KINDS.toSorted((a, b) => orderOf(a) - orderOf(b));
/** Answers that have no end. */
const ENDLESS = ["watchChanges", "logFollow"];

describe("every kind in the console", { skip: skip || chromium?.skip }, () => {
  const places = createPlaces("", KINDS);
  let platform: TestPlatform;
  let narrowKey = "";
  before(async () => {
    platform = await startTestPlatform();
    const body = { name: "narrow", scopes: NARROW };
    narrowKey = (await platform.call("POST", "/api_keys", { body })).body.apiKey as string;
    assert.ok(narrowKey);
  });
  after(async () => {
    await chromium?.close();
    await platform?.stop();
  });

  const visit = async (work: (page: Page) => Promise<void>): Promise<void> => {
    if (chromium === null) return;
    await visitConsole(chromium, (await platform.app.consoleLink()) ?? "", platform.url, work, UNANSWERED);
  };
  /** A session of the console has all rights of its person; here the server sees a key with fewer. */
  const askWithLess = (page: Page): Promise<unknown> =>
    page.route(
      (url) => url.pathname.startsWith("/v0/"),
      (route) => route.continue({ headers: { ...route.request().headers(), authorization: `Bearer ${narrowKey}` } }),
    );
  const open = async (page: Page, path: string): Promise<void> => {
    await page.goto(platform.app.pagesUrl + path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.getByRole("progressbar", { name: "Loading" }).waitFor({ state: "detached" });
    await look(page);
  };

  for (const kind of IN_ORDER) {
    const specimen = EVERY_KIND.find((one) => one.kind === kind.name);
    const collection = { kind, parents: parentsOf(kind, specimen) };
    const list = places.list("main", collection);
    const path = specimen?.collection ?? list;

    test(kind.plural, () =>
      visit(async (page) => {
        await open(page, list);
        if (kind.verbs.includes("create")) await open(page, places.create("main", collection));
        if (kind.verbs.includes("get")) {
          await open(page, places.item("main", collection, "no-such-name"));
          await page.getByRole("alert").waitFor();
        }
        const item = await made(specimen);
        // The fake machine lacks what some kinds need; their pages are walked empty.
        if (item === null) return;
        const shown = [list, ...(kind.verbs.includes("get") ? [places.item("main", collection, item)] : [])];
        for (const place of shown) {
          await open(page, place);
          await assertSame(platform, await copiedLines(page));
        }
        const tabs = await page
          .locator("nav.tabs a")
          .evaluateAll((links) => links.map((link) => link.getAttribute("href")));
        for (const tab of tabs.filter((href) => href?.includes("?tab="))) await open(page, tab ?? "");
        await makeHostile(page, platform.url, path);
        for (const place of shown) {
          await open(page, place);
          assert.equal(await page.locator("img, a[href^='javascript']").count(), 0);
          assert.notEqual(await page.title(), "taken");
        }
        await page.unrouteAll({ behavior: "wait" });
        await page.route(
          (url) => url.pathname.startsWith(`/v0${path}`),
          (route) =>
            route.fulfill({
              status: 500,
              headers: { "x-request-id": "req-1", "access-control-allow-origin": platform.app.pagesUrl },
              json: { code: 500, error: "internal", message: "The disk is full. Free some space." },
            }),
        );
        for (const place of shown) {
          await open(page, place);
          await page.getByRole("alert").getByText("The disk is full.").waitFor();
        }
      }),
    );

    test(`${kind.plural} for somebody who may see nothing`, () =>
      visit(async (page) => {
        await heading(page, "Home");
        await askWithLess(page);
        await open(page, list);
        await page
          .getByRole("alert")
          .getByText(/forbidden|scope/i)
          .first()
          .waitFor();
        if (!kind.verbs.includes("create")) return;
        const link = page.getByRole("button", { name: /^(New|Create one)$/ }).first();
        assert.equal(await link.getAttribute("aria-disabled"), "true");
        assert.match((await link.getAttribute("title")) ?? "", /scope/);
        await open(page, places.create("main", collection));
      }));
  }

  /** Its name; null = this machine refuses it. */
  async function made(specimen: Specimen | undefined): Promise<string | null> {
    if (specimen === undefined) return null;
    const { collection, query = "", name } = specimen;
    const body = OWN_BODIES[specimen.kind] ?? specimen.body;
    const { status, body: told } = await platform.call("POST", `${collection}${query}`, { workspace: "main", body });
    return status >= 400 ? null : (name ?? String(told.id ?? ""));
  }

  for (const path of PAGES)
    test(path === "" ? "home" : path.slice(2), () =>
      visit(async (page) => {
        await heading(page, "Home");
        await open(page, `/main/${path}`);
        await assertSame(platform, await copiedLines(page));
      }),
    );

  test("every operation is reached with the palette, and those that only read answer there", () =>
    visit(async (page) => {
      await heading(page, "Home");
      for (const { id, method, path, summary } of OPERATIONS) {
        await page.keyboard.press("Control+k");
        const box = page.getByRole("combobox", { name: "Search or run" });
        await box.fill(id);
        await page
          .getByRole("option")
          .filter({ has: page.getByText(id, { exact: true }) })
          .click();
        const dialog = page.getByRole("dialog", { name: summary });
        await dialog.getByText(`${method} /v0${path}`, { exact: true }).waitFor();
        if (method === "GET" && !path.includes("{") && !ENDLESS.includes(id)) {
          await dialog.getByRole("button", { name: "Run", exact: true }).click();
          await dialog.locator("pre, [role=alert]").first().waitFor();
        }
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
      }
    }));

  test("every kind has a specimen or is made by the platform", () => {
    const without = KINDS.filter(({ name }) => !EVERY_KIND.some(({ kind }) => kind === name)).map(({ name }) => name);
    assert.deepEqual(without, ["scheduleexecution"]);
  });

  function parentsOf(kind: KindFacts, specimen: Specimen | undefined): string[] {
    if (kind.within === null) return [];
    const words = specimen?.collection.split("/").slice(1) ?? [];
    const names = words.filter((_, at) => at % 2 === 1);
    // What only the platform makes belongs to the sandbox of the other kinds.
    return specimen === undefined ? ["box"] : names.slice(0, places.lineOf(kind).length - 1);
  }
});

function orderOf({ name }: KindFacts): number {
  const at = EVERY_KIND.findIndex(({ kind }) => kind === name);
  return at === -1 ? EVERY_KIND.length : at;
}
