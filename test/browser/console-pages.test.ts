/** Pages of the console that only some kinds have: ports with a frame, domains, volumes, requests of a model, usage. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { openChromium } from "./chromium.ts";
import { heading, look, visitConsole } from "./console-visit.ts";

const chromium = await openChromium();
const IMAGE = "service/py-app:latest";
const WORKSPACE = { workspace: "main" };

describe("pages of the console", { skip: chromium.skip }, () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startTestPlatform();
  });
  after(async () => {
    await chromium.close();
    await platform.stop();
  });

  const visit = async (work: (page: Page) => Promise<void>, refused: RegExp | null = null): Promise<void> => {
    const signedIn = async (page: Page): Promise<void> => {
      await heading(page, "Home");
      await work(page);
    };
    await visitConsole(chromium, (await platform.app.consoleLink()) ?? "", platform.url, signedIn, refused);
  };
  const open = (page: Page, path: string) => page.goto(`${platform.app.pagesUrl}/main/${path}`);
  const make = async (path: string, body: object): Promise<void> => {
    const made = await platform.call("POST", path, { ...WORKSPACE, body });
    assert.equal(made.status, 200, JSON.stringify(made.body));
  };

  test("Enter in the palette counts although the operations are still loading", () =>
    visit(async (page) => {
      let release = (): void => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      await page.route("**/console/assets/chunk-*.js", async (route) => {
        await held;
        await route.continue();
      });
      await page.keyboard.press("Control+k");
      const box = page.getByRole("combobox", { name: "Search or run" });
      await box.fill("workspaceList");
      await box.press("Enter");
      release();
      await page.getByRole("dialog", { name: "List the workspaces you can see" }).waitFor();
    }));

  test("a public preview is shown in a sandboxed frame that reaches nothing of the console", async (t) => {
    // What the page sees of the console, written into the page itself.
    const attack = `<p id="told"></p><script>
      const tries = [];
      const attempt = (name, work) => { try { work(); tries.push(name + " worked"); } catch { tries.push(name + " refused"); } };
      attempt("parent", () => parent.document.title);
      attempt("top", () => { top.location = "/stolen"; });
      attempt("storage", () => localStorage.length);
      document.getElementById("told").textContent = origin + ": " + tries.join(", ");
    </script>`;
    const server = createServer((_request, response) => response.setHeader("content-type", "text/html").end(attack));
    t.after(() => server.close());
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    await make("/sandboxes", { metadata: { name: "site" }, spec: { runtime: { image: IMAGE, memory: 256 } } });
    await visit(async (page) => {
      await open(page, "sandboxes/site?tab=previews");
      await page.getByText("No previews yet").waitFor();
      await page.getByLabel("Port", { exact: true }).fill(String(port));
      await page.getByLabel("For", { exact: true }).selectOption("everybody");
      await page.getByRole("button", { name: "Make a preview" }).click();
      await page.getByRole("button", { name: /^Show port-/ }).click();
      await page.frameLocator("iframe").getByText("null: parent refused, top refused, storage refused").waitFor();
      assert.match(page.url(), /tab=previews$/);
      await look(page);
      await page.getByRole("button", { name: /^Delete port-/ }).click();
      await page.getByText("No previews yet").waitFor();
    }, /Unsafe attempt to initiate navigation|is sandboxed/);
  });

  test("a domain has its records to copy, and says why it is not verified", () =>
    visit(async (page) => {
      await make("/customdomains", { metadata: { name: "apps.example.test" }, spec: {} });
      await open(page, "customdomains/apps.example.test?tab=dns");
      await page.getByRole("cell", { name: /_service-verification\.apps\.example\.test/ }).waitFor();
      await page.getByRole("button", { name: /^Copy service-verify=/ }).waitFor();
      await page.getByRole("heading", { name: "Certificates" }).waitFor();
      await look(page);
    }));

  test("a volume asks for snapshots by a schedule and for a clone", () =>
    visit(async (page) => {
      await make("/volumes", { metadata: { name: "kept" }, spec: { size: 16 } });
      await open(page, "volumes/kept?tab=volumesnapshots");
      await page.getByText("No snapshots yet").waitFor();
      await page.getByLabel("Schedule", { exact: true }).fill("0 3 * * *");
      await page.getByLabel("Keep the newest").fill("3");
      await page.getByRole("button", { name: "Save" }).click();
      // The fake machine copies no volumes; the page says so.
      await page.getByText("which has no copies of volumes").waitFor();
      await page.getByRole("button", { name: "Clone as it is now" }).click();
      await page.getByRole("dialog", { name: "Clone kept" }).waitFor();
      await look(page);
    }));

  test("a model has its requests and what its policy leaves; usage leads to events, prices and what if", () =>
    visit(async (page) => {
      const maxTokens = { granularity: "month", total: 1000 };
      await make("/policies", { metadata: { name: "cap" }, spec: { type: "maxToken", maxTokens } });
      const spec = { runtime: { type: "mock", model: "echo" }, policies: ["cap"] };
      await make("/models", { metadata: { name: "asked" }, spec });
      await open(page, "models/asked?tab=chat");
      await page.getByText("of 1,000 tokens left").waitFor();
      await page.getByLabel("Message", { exact: true }).fill("hello");
      await page.keyboard.press("Enter");
      await page.getByText("tokens in").waitFor();
      await page.getByRole("link", { name: "Requests" }).click();
      await page.getByRole("cell", { name: /^[0-9a-f-]{36}$/ }).waitFor();
      await look(page);
      await open(page, "-/usage?by=resource_name");
      await page.getByRole("list", { name: "Legend" }).getByText("asked").waitFor();
      await look(page);
      await page.getByRole("link", { name: "Model · asked" }).click();
      await page.getByRole("cell", { name: "Model requests count" }).waitFor();
      const download = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download CSV" }).click();
      assert.equal((await download).suggestedFilename(), "events.csv");
      await look(page);
      await page.getByRole("link", { name: "Prices" }).click();
      await page.getByLabel("Another price of Model requests count").fill("2");
      await page.getByRole("button", { name: "Compare" }).click();
      await page.getByText("at the prices in force").waitFor();
      await look(page);
    }));
});
