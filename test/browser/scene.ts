/**
 * One platform, one other identity provider, one program and one browser for all suites about the pages for people.
 * `BERTH_TEST_SCREENSHOTS=FOLDER` keeps a picture of every page that a suite looks at.
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { hashPassword } from "../../src/auth/passwords.ts";
import { randomWord } from "../../src/lib/ids.ts";
import { CLIENT, type OtherProvider, startOtherProvider } from "../identity/other-provider.ts";
import { LONG } from "../long.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import type { Chromium } from "./chromium.ts";
import { makeAdmin, PASSWORD } from "./people.ts";

export interface Scene extends AsyncDisposable {
  platform: TestPlatform;
  /** Origin of the pages. */
  pages: string;
  other: OtherProvider;
  /** Where the program waits for its code; its page leads on to `/done`, as programs' pages do. */
  callback: string;
  /** An admin of the account. */
  email: string;
  accountId: string;
  /** Runs with a fresh browser profile. */
  person(work: (page: Page) => Promise<void>): Promise<void>;
  /** Another person of the account, with the usual password. */
  colleague(): Promise<{ sub: string; email: string }>;
  /** Invites to `main`, and returns the link. */
  invite(email: string, more?: object): Promise<string>;
  post(path: string, fields: object): Promise<Record<string, string>>;
}

export async function openScene(chromium: Chromium): Promise<Scene> {
  const other = await startOtherProvider();
  const platform = await startTestPlatform({
    config: {
      identity_providers: JSON.stringify([
        { id: "corp", name: "Corp", issuer: other.issuer, client_id: CLIENT.id, client_secret: CLIENT.secret },
      ]),
    },
  });
  other.open([`${platform.url}/oauth/external/corp`]);
  const [program, callback] = await startProgram();
  const { store } = platform.app;
  const accountId = (await store.people.listAccountsAcrossUsers())[0]?.id ?? "";
  return {
    platform,
    pages: platform.app.pagesUrl,
    other,
    callback,
    ...(await makeAdmin(platform)),
    accountId,
    async person(work) {
      const { page, context } = await chromium.person();
      try {
        await work(page);
      } finally {
        await context.close();
      }
    },
    async colleague() {
      const email = `colleague-${randomWord(8)}@example.test`;
      const hash = await hashPassword(PASSWORD);
      const { sub } = await store.write(async (tx) => {
        const user = await store.people.createUser(tx, { email });
        await store.people.setAccountRole(tx, accountId, user.sub, "member");
        return user;
      });
      await store.people.setPassword(sub, hash);
      return { sub, email };
    },
    async invite(email, more = {}) {
      const { status, body } = await platform.call("POST", "/users", { body: { email, ...more }, workspace: "main" });
      assert.equal(status, 200, JSON.stringify(body));
      return body.url;
    },
    async post(path, fields) {
      const response = await fetch(platform.url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(fields),
      });
      return (await response.json()) as Record<string, string>;
    },
    async [Symbol.asyncDispose]() {
      program.closeAllConnections();
      program.close();
      await platform.stop();
      await other[Symbol.asyncDispose]();
    },
  };
}

async function startProgram(): Promise<[server: Server, callback: string]> {
  const server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url ?? "/", "http://127.0.0.1");
    if (pathname === "/callback") response.writeHead(302, { location: `http://localhost:${port}/done${search}` }).end();
    else response.setHeader("content-type", "text/html").end("<title>the program</title>");
  }).listen(0);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return [server, `http://127.0.0.1:${port}/callback`];
}

export const heading = (page: Page, name: string): Promise<void> =>
  page.getByRole("heading", { name, exact: true }).waitFor();
export const click = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();
export const follow = (page: Page, name: string): Promise<void> =>
  page.getByRole("link", { name, exact: true }).click();
export const mainText = async (page: Page): Promise<string> => (await page.locator("main").textContent()) ?? "";

/** A phone, and in the long run a desktop too: a page that is not too wide for the one is hardly so for the other. */
const WIDTHS = LONG || process.env.BERTH_TEST_SCREENSHOTS ? [390, 1280] : [390];

/** Every page can be read and used: on any screen, by keyboard and with a screen reader. */
export async function look(page: Page, name: string): Promise<void> {
  for (const width of WIDTHS) {
    if (page.viewportSize()?.width !== width) await page.setViewportSize({ width, height: 800 });
    const isTooWide = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
    assert.equal(isTooWide, false, `${name} is wider than ${width} px`);
    const folder = process.env.BERTH_TEST_SCREENSHOTS;
    for (const colorScheme of folder === undefined ? [] : (["light", "dark"] as const)) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(folder ?? "", `${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
  }
  const unusable = await page.evaluate(UNUSABLE);
  assert.deepEqual(unusable, [], name);
}

/** What of a page has no name, or points nowhere. */
const UNUSABLE = `[
  ...[...document.querySelectorAll("input:not([type=hidden])")].filter((one) => one.labels.length !== 1).map((one) => "no label: " + one.outerHTML),
  ...[...document.querySelectorAll("button, a")].filter((one) => !one.textContent.trim()).map((one) => "no name: " + one.outerHTML),
  ...[...document.querySelectorAll("[aria-describedby]")].filter((one) => one.getAttribute("aria-describedby").split(" ").some((id) => !document.getElementById(id))).map((one) => "described by nothing: " + one.outerHTML),
  ...(document.querySelectorAll("h1").length === 1 && document.querySelectorAll("main").length === 1 ? [] : ["not one heading in one main part"]),
  ...(document.documentElement.lang === "en" && document.title !== "" ? [] : ["no language or title"]),
]`;

/** The alert of the page is about the field with this label. */
export async function assertWrong(page: Page, label: string, text: RegExp): Promise<void> {
  assert.match((await page.getByRole("alert").textContent()) ?? "", text);
  const field = page.getByLabel(label, { exact: true });
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  const described = ((await field.getAttribute("aria-describedby")) ?? "").split(" ");
  assert.ok(described.includes((await page.getByRole("alert").getAttribute("id")) ?? "none"));
}

export async function fillNewPassword(page: Page, password: string, again = password): Promise<void> {
  await page.getByLabel("New password").fill(password);
  await page.getByLabel("The same again").fill(again);
}
