/** Pages of the console that only some kinds have: ports with a frame, domains, volumes, requests of a model, usage. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { linkSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { SANDBOX_FILES } from "../../src/contract/sandbox-wire.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { skip as noDaemon, startSandboxd } from "../sandboxd-harness.ts";
import { type ChattyAgent, startChattyAgent } from "./chatty-agent.ts";
import { openChromium } from "./chromium.ts";
import { look, visitConsole } from "./console-visit.ts";

const chromium = await openChromium();
const IMAGE = "service/py-app:latest";
/** A server that the platform answers itself. */
const MEMORY_IMAGE = "service/mcp-memory:latest";
/** Ports that the system gives away are above it. */
const EPHEMERAL_PORT = 10_000;
const WORKSPACE = { workspace: "main" };
/** Height of a row in lists. */
const ROW_PX = 36;
/** A command starts, asks and ends, also on a busy machine. */
const COMMAND_MS = 120_000;

describe("pages of the console", { skip: chromium.skip }, () => {
  let platform: TestPlatform;
  let agent: ChattyAgent;
  const machine = new FakeMachine({
    images: [IMAGE],
    // What a test asks for by its number is there; the ports of agents are the platform's choice.
    portOf: (_uid, port) => (port < EPHEMERAL_PORT ? agent.port : port),
  });
  machine.images.set(IMAGE, { ...machine.addImage(IMAGE), argv: ["sleep", "infinity"] });
  before(async () => {
    platform = await startTestPlatform({
      driver: fakeDriver(machine),
      config: { quotas: "drive_mb=64,drive_objects=1000" },
    });
    agent = await startChattyAgent((thread, messages) =>
      platform.call("POST", `/agents/chatty/threads/${thread}/messages`, { ...WORKSPACE, body: { messages } }),
    );
  });
  after(async () => {
    await chromium.close();
    await platform.stop();
    await machine.dispose();
    agent.stop();
  });

  const visit = async (work: (page: Page) => Promise<void>, refused: RegExp | null = null): Promise<void> =>
    visitConsole(chromium, (await platform.app.consoleLink()) ?? "", platform.url, work, refused);
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

  test("an agent answers in threads as it speaks, and to a call with any body; what it says stays text", () =>
    visit(async (page) => {
      await make("/agents", { metadata: { name: "chatty" }, spec: { runtime: { image: IMAGE, memory: 256 } } });
      await open(page, "agents/chatty?tab=chat");
      await page.getByText("The agent keeps no threads yet.").waitFor();
      await page.getByLabel("Message", { exact: true }).fill("hello");
      await page.keyboard.press("Enter");
      const conversation = page.getByRole("log", { name: "Conversation" });
      await conversation.getByText("<img src=x>", { exact: true }).waitFor();
      agent.goOn();
      await conversation.getByText("<img src=x> heard hello", { exact: true }).waitFor();
      const threads = page.getByRole("navigation", { name: "Threads" });
      await threads.getByText("2 messages").waitFor();
      await look(page);
      await page.getByRole("button", { name: "New thread" }).click();
      await page.getByText("Say something").waitFor();
      await threads.getByText("2 messages").click();
      await conversation.getByText("<img src=x> heard hello", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Forget" }).click();
      await page.getByText("The agent keeps no threads yet.").waitFor();
      await page.getByRole("link", { name: "Call", exact: true }).click();
      await page.getByLabel("Path", { exact: true }).fill("/missing");
      await page.getByLabel("Body", { exact: true }).fill("{}");
      await page.getByRole("button", { name: "Send" }).click();
      const answer = page.getByRole("region", { name: "Answer" });
      await answer.getByText("404").waitFor();
      await answer.getByText("<b>POST /missing {}</b>").waitFor();
      await look(page);
    }));

  test("the tools of an MCP server are listed with their schema and called with a form", () =>
    visit(async (page) => {
      await make("/functions", { metadata: { name: "notes" }, spec: { runtime: { image: MEMORY_IMAGE } } });
      await open(page, "functions/notes?tab=tools");
      await page.getByRole("button", { name: /^remember/ }).click();
      await page.getByLabel("Thread", { exact: true }).fill("t1");
      await page.getByLabel("Content", { exact: true }).fill("milk");
      await page.getByRole("button", { name: "Call", exact: true }).click();
      await page.getByRole("region", { name: "Result" }).waitFor();
      await page.getByRole("button", { name: /^recall/ }).click();
      await page.getByLabel("Arguments as JSON").fill('{"thread": "t1"}');
      await page.getByRole("button", { name: "Call", exact: true }).click();
      await page.getByRole("region", { name: "Result" }).getByText(/milk/).first().waitFor();
      await look(page);
      // Sessions, and a session that ends between two requests.
      await make("/functions", { metadata: { name: "shouts" }, spec: { runtime: { image: IMAGE, memory: 256 } } });
      await open(page, "functions/shouts?tab=tools");
      await page.getByText("<i>Says it</i>").last().waitFor();
      await page.getByLabel("Arguments as JSON").fill('{"a.b": 1}');
      await page.getByRole("button", { name: "Call", exact: true }).click();
      await page.getByText('<b>{"a.b":1}</b>').waitFor();
    }));

  test("tools of a pinned MCP server are withheld until an admin has read and approved them", () =>
    visit(async (page) => {
      const spec = { runtime: { image: IMAGE, memory: 256 }, tools: { pins: "approval" } };
      await make("/functions", { metadata: { name: "watched" }, spec });
      await open(page, "functions/watched?tab=tools");
      const withheld = page.getByRole("list", { name: "Withheld tools" });
      await withheld.getByText("<i>Says it</i>").waitFor();
      await page.getByText("No tools", { exact: true }).waitFor();
      await look(page);
      await page.getByRole("button", { name: "Approve shout" }).click();
      await page.getByText("1 tool approved").waitFor();
      await page.getByRole("list", { name: "Tools" }).getByText("shout").waitFor();
      type Told = Record<"approved" | "withheld", unknown[]>;
      const { body } = await platform.call<Told>("GET", "/functions/watched/tools", WORKSPACE);
      assert.deepEqual([body.approved.length, body.withheld.length], [1, 0]);
    }));

  test("what the drives of a workspace hold is shown beside its quota", () =>
    visit(async (page) => {
      await make("/drives", { metadata: { name: "measured" }, spec: {} });
      await open(page, "drives/measured");
      await page.getByText(/^0 B of 64 MB$/).waitFor();
      await page.getByRole("progressbar", { name: "Objects in drives in use" }).waitFor();
      await look(page);
    }));

  test("a key has the scopes that were ticked; home, logs and access give their requests", () =>
    visit(async (page) => {
      const copied = async (text: RegExp): Promise<void> => {
        await page.getByRole("button", { name: "Copy as…" }).click();
        await page.getByRole("dialog").getByText(text).first().waitFor();
        await page.keyboard.press("Escape");
      };
      await copied(/berth overview get -w main/);
      await open(page, "-/logs?kind=agents&text=lost");
      await copied(/observability\/logs\?resourceType=agents&search=lost&start=/);
      await open(page, "-/access?tab=keys");
      await copied(/berth\.api\.apiKeyList\(\)/);
      await page.getByText("Scopes: all that you may do").click();
      await page.getByRole("checkbox", { name: "Drives", exact: true }).check();
      await page.getByRole("checkbox", { name: "drives:delete" }).uncheck();
      await look(page);
      await page.getByText("Scopes: 3 scopes only").click();
      await page.getByLabel("Name of a new key").fill("narrow");
      await page.keyboard.press("Enter");
      await page.getByText("It is shown once").waitFor();
      const key = (await page.locator("form pre").textContent()) ?? "";
      const status = async (path: string): Promise<number> =>
        (await platform.call("GET", path, { ...WORKSPACE, key })).status;
      assert.deepEqual([await status("/drives"), await status("/volumes")], [200, 403]);
    }));

  test("a long list opens at a name with what lies around it, and never has more than 200 rows in the document", () =>
    visit(async (page) => {
      const spec = { type: "maxToken", maxTokens: { granularity: "month", total: 1 } };
      const names = Array.from({ length: 450 }, (_, at) => `p-${String(at).padStart(3, "0")}`);
      await Promise.all(names.map((name) => make("/policies", { metadata: { name }, spec })));
      await open(page, "policies?sort=name:asc");
      const rowOf = (name: string) => page.getByRole("link", { name, exact: true });
      await rowOf("p-001").waitFor();
      await page.getByLabel("Go to a name").fill("p-400");
      // Somebody else's change draws the list again; what was typed stays.
      await make("/policies", { metadata: { name: "p-0005" }, spec });
      await rowOf("p-0005").waitFor();
      await page.keyboard.press("Enter");
      await rowOf("p-400").waitFor();
      // What lies before it comes above it, and what was asked for stays in view.
      await rowOf("p-390").waitFor({ state: "attached" });
      const [row, frame] = [await rowOf("p-400").boundingBox(), await page.locator(".table-frame").boundingBox()];
      assert.ok(row && frame && row.y > frame.y && row.y < frame.y + 3 * ROW_PX, JSON.stringify([row, frame]));
      assert.match(page.url(), /from=p-400/);
      await page.locator(".table-frame").evaluate((frame) => frame.scrollTo(0, 0));
      await rowOf("p-210").waitFor({ state: "attached" });
      assert.ok((await page.locator("tbody tr").count()) <= 200);
      await page.getByRole("slider", { name: "Place in the list" }).press("Home");
      await rowOf("p-001").waitFor();
      await look(page);
    }));

  test("lines that are copied do the same as the page: curl and the command line", () =>
    visit(async (page) => {
      await make("/drives", { metadata: { name: "copied", labels: { quote: "it's" } }, spec: {} });
      await open(page, "drives/copied");
      await page.getByRole("button", { name: "Copy as…" }).click();
      const [curl = "", command = ""] = await page.getByRole("dialog").locator("pre").allTextContents();
      const env = {
        ...{ PATH: process.env.PATH ?? "", HOME: platform.dataDir, BERTH_DATA: platform.dataDir },
        ...{ BERTH_API_KEY: platform.apiKey, BERTH_URL: platform.url },
      };
      const run = async (line: string): Promise<string> =>
        (await promisify(execFile)("sh", ["-c", line], { env, timeout: COMMAND_MS })).stdout;
      const { body } = await platform.call("GET", "/drives/copied", WORKSPACE);
      assert.deepEqual(JSON.parse(await run(curl)).metadata, body.metadata);
      const berth = `"${process.execPath}" "${join(import.meta.dirname, "../../src/main.ts")}"`;
      assert.match(command, /^berth drive get copied -w main$/);
      const told = await run(`${command.replace(/^berth/, berth)} -o json`);
      assert.deepEqual(JSON.parse(told).metadata, body.metadata);
    }));

  test("YAML is completed and judged by the schema of the kind", () =>
    visit(async (page) => {
      await open(page, "-/new/sandboxes?as=text");
      const editor = page.getByRole("textbox", { name: "The resource as YAML" });
      await editor.click();
      await page.keyboard.press("Control+a");
      await page.keyboard.type("spec:\n  colour: red\nruntime:");
      await page.locator(".cm-lintRange-warning").filter({ hasText: "colour" }).waitFor();
      await page.keyboard.press("Control+a");
      await page.keyboard.type("spec:\n  runt");
      // The editor does not take Enter for a choice in the first moment of its list.
      await page.getByRole("option", { name: /^runtime/ }).click();
      await editor.getByText("runtime:").waitFor();
      // Typing over a selection is the editor's own doing, also where it adds brackets around it.
      await page.keyboard.press("Control+a");
      await page.keyboard.type("[");
      await editor.getByText("[spec:").waitFor();
      await look(page);
    }));

  test("values that people chose stay text in lists and on pages, whatever they look like", () =>
    visit(async (page) => {
      const hostile = '<img src=x onerror="document.title=1">';
      const metadata = { name: "hostile", displayName: hostile, labels: { note: hostile } };
      await make("/models", { metadata, spec: { runtime: { type: "mock", model: hostile } } });
      await open(page, "models");
      await page.getByRole("cell", { name: hostile }).waitFor();
      await open(page, "models/hostile");
      await page.getByText(hostile).first().waitFor();
      assert.equal(await page.locator("img").count(), 0);
    }));

  test("a key of a service account has the scopes that were ticked; the map of egress has its gateways", () =>
    visit(async (page) => {
      await open(page, "-/access?tab=accounts");
      await page.getByLabel("Name of a new service account").fill("robot");
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "New key" }).click();
      const dialog = page.getByRole("dialog", { name: "A key of robot" });
      await dialog.getByText("Scopes: all that the service account may do").click();
      await dialog.getByRole("checkbox", { name: "drives:list" }).check();
      await dialog.getByRole("button", { name: "Make a key" }).click();
      await dialog.getByText("It is shown once").waitFor();
      const key = (await dialog.locator("pre").textContent()) ?? "";
      const status = async (path: string): Promise<number> =>
        (await platform.call("GET", path, { ...WORKSPACE, key })).status;
      assert.deepEqual([await status("/drives"), await status("/volumes")], [200, 403]);
      await make("/vpcs/default/egressgateways", { metadata: { name: "door" }, spec: {} });
      await open(page, "-/egress");
      await page.getByRole("link", { name: "door" }).waitFor();
      await page.getByText("No workload uses it").waitFor();
      await look(page);
    }));

  test("terminals in tabs have shells of their own, which a reload finds again", { skip: noDaemon }, async () => {
    await using daemon = await startSandboxd();
    await make("/sandboxes", { metadata: { name: "tty" }, spec: { runtime: { image: IMAGE, memory: 256 } } });
    // The fake machine has no daemon in its sandboxes: the API of this one is a real daemon's.
    const { endpoint } =
      [...machine.workloads.values()].findLast(({ spec }) => spec.exec === undefined)?.observed ?? {};
    assert.ok(endpoint?.kind === "unix");
    const api = join(endpoint.dir, SANDBOX_FILES.api);
    rmSync(api);
    linkSync(daemon.config.apiSocket, api);
    await visit(async (page) => {
      const shell = async (name: string, typed: string, told: string): Promise<void> => {
        const terminal = page.getByRole("region", { name, exact: true });
        await terminal.locator(".xterm-rows").getByText(/[#$]/).first().waitFor();
        await terminal.getByRole("textbox").pressSequentially(typed);
        await page.keyboard.press("Enter");
        await terminal.getByText(told).first().waitFor();
      };
      await open(page, "sandboxes/tty?tab=terminal");
      await shell("Terminal 1", "X=one; echo is-$X", "is-one");
      await page.getByRole("button", { name: "New terminal" }).click();
      await shell("Terminal 2", "echo has-$X-none", "has--none");
      await look(page);
      await page.reload();
      await page.getByRole("button", { name: "Terminal 1", exact: true }).click();
      await shell("Terminal 1", "echo still-$X", "still-one");
      await page.getByRole("button", { name: "Close terminal 1" }).click();
      await page.getByRole("region", { name: "Terminal 1", exact: true }).getByText("has--none").first().waitFor();
    });
  });
});
