/** The console in a real browser: the first visit, and one flow through each general page. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { openChromium } from "./chromium.ts";
import { heading, look, visitConsole } from "./console-visit.ts";
import { fillSignIn, makeAdmin } from "./people.ts";

const chromium = await openChromium();
/** The fake machine runs its commands as processes of this machine. */
const IMAGE = "service/py-app:latest";

describe("the console", { skip: chromium.skip }, () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startTestPlatform();
  });
  after(async () => {
    await chromium.close();
    await platform.stop();
  });

  const visit = async (work: (page: Page) => Promise<void>, link?: string): Promise<void> =>
    visitConsole(chromium, link ?? (await platform.app.consoleLink()) ?? "", platform.url, work);

  test("the printed link opens it signed in, once, and leaves no secret in the address", async () => {
    const link = (await platform.app.consoleLink()) ?? "";
    await visit(async (page) => {
      assert.equal(page.url(), `${platform.app.pagesUrl}/main`);
      await page.reload();
      await heading(page, "Home");
      await page.getByText("This machine cannot isolate workloads.").waitFor();
      await look(page);
    }, link);
    const { page, context } = await chromium.person();
    await page.goto(link);
    await page.getByText("This link was used already").waitFor();
    await context.close();
  });

  test("without a link a person signs in with a password, and out again", async () => {
    const { email } = await makeAdmin(platform);
    const { page, context } = await chromium.person();
    await page.goto(platform.app.pagesUrl);
    await page.getByRole("link", { name: "Sign in", exact: true }).click();
    await fillSignIn(page, email);
    await heading(page, "Home");
    await page.goto((await platform.app.consoleLink()) ?? "");
    await heading(page, "Another person's link");
    await page.getByRole("button", { name: "Stay signed in" }).click();
    await heading(page, "Home");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL((url) => url.pathname.startsWith("/oauth/"));
    await page.goto(platform.app.pagesUrl);
    await page.getByText("This browser is not signed in.").waitFor();
    await context.close();
  });

  test("a model is made with a form, found in its list, changed as YAML and deleted, by keyboard", () =>
    visit(async (page) => {
      await page.keyboard.press("Control+k");
      await page.keyboard.type("models");
      await page.getByRole("option", { name: "Models go" }).waitFor();
      await page.keyboard.press("Enter");
      await heading(page, "Models");
      await page.getByText("No models yet").waitFor();
      assert.equal(await page.title(), "Models · main · Berth");
      await look(page);
      await page.keyboard.press("c");
      await page.getByLabel("Name", { exact: true }).fill("UPPER case");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").waitFor();
      await page.getByLabel("Name", { exact: true }).fill("first");
      await look(page);
      await page.keyboard.press("Enter");
      await heading(page, "first");
      assert.equal(await page.title(), "first · Models · main · Berth");
      await look(page);
      await page.getByRole("link", { name: "YAML" }).click();
      await page.getByRole("textbox", { name: "first as YAML" }).click();
      await page.keyboard.press("Control+End");
      await page.keyboard.type("x: 1");
      await page.getByRole("button", { name: "Discard" }).click();
      await look(page);
      await page.goto(`${platform.app.pagesUrl}/main/models?q=fir`);
      await page.getByRole("link", { name: "first" }).waitFor();
      await look(page);
      await page.getByLabel("Pick first").check();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await page.getByText("Nothing matches").waitFor();
    }));

  test("the palette goes anywhere and runs any operation", () =>
    visit(async (page) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Search or run" }).fill("drives");
      await page.keyboard.press("Enter");
      await heading(page, "Drives");
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Search or run" }).fill("workspaceList");
      await page.getByRole("option", { name: "workspaceList", selected: true }).waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await page.getByText('"displayName": "main"').waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "hidden" });
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keys" }).waitFor();
      await look(page);
    }));

  test("a model answers in the chat as it speaks, and the list knows of others' changes at once", () =>
    visit(async (page) => {
      const other = { metadata: { name: "beside" }, spec: { runtime: { type: "mock", model: "mock" } } };
      await platform.call("POST", "/models", { workspace: "main", body: other });
      await page.getByRole("button", { name: "Try a model" }).click();
      await page.getByRole("link", { name: "Chat" }).click();
      await page.getByLabel("Beside it").selectOption("beside");
      await page.getByLabel("Message", { exact: true }).fill("hello");
      await page.keyboard.press("Enter");
      await page.getByText("tokens in").nth(1).waitFor();
      assert.match((await page.locator(".turn.assistant p").first().textContent()) ?? "", /\w/);
      await look(page);
      await page.getByRole("link", { name: "Metrics" }).click();
      const chart = page.getByRole("slider", { name: "Requests over time" });
      await chart.press("ArrowLeft");
      assert.match((await chart.getAttribute("aria-valuetext")) ?? "", /: 0$/);
      await look(page);
      await page.goto(`${platform.app.pagesUrl}/main/drives`);
      await page.getByText("No drives yet").waitFor();
      await platform.call("POST", "/drives", { workspace: "main", body: { metadata: { name: "told" }, spec: {} } });
      await page.getByRole("link", { name: "told" }).waitFor();
    }));

  test("the rows of a list are asked for with the first token, before what the frame shows", () =>
    visit(async (page) => {
      await platform.call("POST", "/drives", { workspace: "main", body: { metadata: { name: "early" }, spec: {} } });
      const asked: string[] = [];
      page.on("request", (request) => {
        const { pathname, search } = new URL(request.url());
        if (!pathname.startsWith("/console/assets/")) asked.push(pathname + search);
      });
      const sent = (await page.goto(`${platform.app.pagesUrl}/main/drives`))?.text();
      await page.getByRole("link", { name: "early" }).waitFor();
      // What the page before asked for may still be on its way.
      const own = asked.slice(asked.indexOf("/console/token"));
      assert.deepEqual(own.slice(0, 2), ["/console/token", "/v0/drives?limit=200"]);
      // What the server sends is the frame that the program goes on with.
      assert.match((await sent) ?? "", /<div id="app"><div class="shell"><aside class="side">/);
    }));

  test("a template is deployed with one click, and a folder of one's own", () =>
    visit(async (page) => {
      await page.getByRole("button", { name: "Deploy an agent" }).click();
      await heading(page, "Templates");
      await look(page);
      const echo = page.locator("article", { has: page.getByRole("heading", { name: "agent-echo" }) });
      await echo.getByRole("button", { name: "Deploy" }).click();
      await page.waitForURL(/\/agents\/agent-echo-\w+\?tab=logs/);
      const name = /agents\/([\w-]+)/.exec(page.url())?.[1] ?? "";
      // The archive was taken: whoever waits for one has another status.
      const { body } = await platform.call("GET", `/agents/${name}`, { workspace: "main" });
      assert.notEqual(body.status, "UPLOADING");
      await page.goto(`${platform.app.pagesUrl}/main/-/templates`);
      await page.getByLabel("Folder to deploy").setInputFiles(join(import.meta.dirname, "../../examples/mcp-hello"));
      await page.getByText("6 files").waitFor();
      await page.getByLabel("As", { exact: true }).selectOption("function");
      await page.getByLabel("Name", { exact: true }).fill("my-own");
      await page
        .getByRole("region", { name: "Your own code" })
        .getByRole("button", { name: "Deploy", exact: true })
        .click();
      await heading(page, "my-own");
      await page.getByRole("link", { name: "Revisions" }).click();
      await page.getByText("answers", { exact: true }).waitFor();
    }));

  test("a revision is compared with the one that answers", () =>
    visit(async (page) => {
      const agent = (memory: number) => ({
        ...{ metadata: { name: "changing" } },
        spec: { runtime: { image: IMAGE, memory, envs: [{ name: "TOKEN", value: "hidden-value", secret: true }] } },
      });
      await platform.call("POST", "/agents", { workspace: "main", body: agent(256) });
      await platform.call("PUT", "/agents/changing", { workspace: "main", body: agent(512) });
      await page.goto(`${platform.app.pagesUrl}/main/agents/changing?tab=revisions`);
      await page.getByRole("button", { name: "Compare" }).click();
      await page.getByRole("cell", { name: "runtime.memory" }).waitFor();
      await page.getByRole("cell", { name: "512", exact: true }).waitFor();
      await look(page);
      const { body } = await platform.call("GET", "/agents/changing/revisions", { workspace: "main" });
      assert.equal(body.length, 2);
      assert.ok(!JSON.stringify(body).includes("hidden-value"));
    }));

  test("snapshots and forks of a sandbox are a tree", () =>
    visit(async (page) => {
      const box = { metadata: { name: "root" }, spec: { runtime: { image: IMAGE, memory: 256 } } };
      assert.equal((await platform.call("POST", "/sandboxes", { workspace: "main", body: box })).status, 200);
      await page.goto(`${platform.app.pagesUrl}/main/sandboxes/root?tab=snapshots`);
      await page.getByRole("button", { name: "Take a snapshot" }).click();
      await page.getByRole("button", { name: /^Delete snap_/ }).click();
      await page.getByRole("button", { name: /^Delete snap_/ }).waitFor({ state: "detached" });
      // Snapshots are known by their id, also when people gave them names.
      const named = { workspace: "main", body: { name: "clean" } };
      assert.equal((await platform.call("POST", "/sandboxes/root/snapshots", named)).status, 200);
      await page.reload();
      await page.getByRole("button", { name: "Fork clean" }).click();
      await page.getByRole("link", { name: /^root-\w+$/ }).waitFor();
      await look(page);
      await page.getByRole("link", { name: /^root-\w+$/ }).click();
      await page.locator(".branches").getByRole("link", { name: "root", exact: true }).waitFor();
    }));

  test("an execution is a grid: filter, choose a task, see its log, run the failed ones again", () =>
    visit(async (page) => {
      const command = ["sh", "-c", "echo task $TASK_INDEX; test $TASK_INDEX != 1"];
      const job = { metadata: { name: "picky" }, spec: { runtime: { image: IMAGE, memory: 256, command } } };
      assert.equal((await platform.call("POST", "/jobs", { workspace: "main", body: job })).status, 200);
      await page.goto(`${platform.app.pagesUrl}/main/jobs/picky?tab=executions`);
      await page.getByLabel("Tasks", { exact: true }).fill("[{}, {}, {}]");
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await page.getByRole("button", { name: "Failed 1" }).click();
      await page.getByRole("button", { name: "Succeeded 2" }).waitFor();
      const picture = page.getByRole("slider", { name: "Task" });
      await picture.press("ArrowRight");
      assert.equal(await picture.getAttribute("aria-valuetext"), "Task 1, failed");
      await page.getByText("Ended with exit code 1").waitFor();
      await page.locator("pre", { hasText: "task 1" }).waitFor();
      await look(page);
      await page.getByRole("button", { name: "Timeline" }).click();
      await page.getByText("0 s", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Rerun failed" }).click();
      await page.getByRole("button", { name: "Succeeded 1" }).waitFor();
    }));

  test("pages that are no kind: images, logs, usage, nodes and access; a key is shown once and works", () =>
    visit(async (page) => {
      await page.goto(`${platform.app.pagesUrl}/main/nothing`);
      await page.getByRole("link", { name: "Go home" }).click();
      await heading(page, "Home");
      for (const name of ["Images", "Usage", "Logs", "Nodes", "Settings", "Access"]) {
        await page.locator("aside").getByRole("link", { name, exact: true }).click();
        await heading(page, name);
        await look(page);
      }
      await page.getByLabel("Invite somebody by email").fill("somebody@example.test");
      await page.keyboard.press("Enter");
      await page.getByText("Hand this link on").waitFor();
      await page.getByRole("link", { name: "Single sign-on" }).click();
      await page.getByLabel("Group of the identity provider").fill("engineering");
      await page.keyboard.press("Enter");
      await page.getByRole("cell", { name: "engineering" }).waitFor();
      await look(page);
      await page.getByRole("link", { name: "Service accounts" }).click();
      await page.getByText("No service accounts yet").waitFor();
      await look(page);
      await page.getByRole("link", { name: "API keys" }).click();
      await page.getByLabel("Name of a new key").fill("from the console");
      await page.keyboard.press("Enter");
      await page.getByText("It is shown once.").waitFor();
      const key = (await page.locator("pre").textContent()) ?? "";
      assert.equal((await platform.call("GET", "/workspaces", { key })).status, 200);
      await look(page);
    }));
});
