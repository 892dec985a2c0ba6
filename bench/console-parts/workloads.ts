/** Logs, tasks and a terminal, of real workloads. */
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { TestPlatform } from "../../test/platform.ts";
import type { Figure } from "./report.ts";
import { p95, untilFrame, type Visit, watchLongTasks } from "./visit.ts";

const LINES = 100_000;
/** The sandbox writes some lines of its own, and the page holds no more than LINES. */
const LINES_MIN = 99_000;
const TASKS = 100_000;
const ECHOES = 40;
const INTERRUPTS = 5;
const TALKER = "talker";
const HOUR_MS = 3_600_000;
const LOOK_EVERY_MS = 200;
const LOOKS_MAX = 300;

export async function figuresOfWorkloads(visit: Visit): Promise<Figure[]> {
  const { platform } = visit;
  if (!(await platform.app.runsWorkloads())) {
    console.log("This machine runs no workloads: logs, tasks and the terminal are left out.");
    return [];
  }
  const made = await platform.call("POST", "/sandboxes", {
    workspace: "main",
    body: { metadata: { name: TALKER }, spec: { runtime: { memory: 512 } } },
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  return [...(await logs(visit)), ...(await tasks(visit)), ...(await terminal(visit))];
}

async function logs({ page, platform, open }: Visit): Promise<Figure[]> {
  const response = await fetch(`${platform.url}/main/sandboxes/${TALKER}/process`, {
    method: "POST",
    headers: { authorization: `Bearer ${platform.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ command: `seq -f 'request %.0f took 12 ms' 1 ${LINES}`, waitForCompletion: true }),
  });
  assert.equal(response.status, 200, await response.text());
  await untilKept(platform);
  await open(`sandboxes/${TALKER}?tab=logs`);
  await page.getByRole("log").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  const longest = await watchLongTasks(page);
  const shown = `Number(document.body.innerText.match(/([\\d,]+) lines? shown/)?.[1].replaceAll(",", "") ?? 0)`;
  const isWhole = `document.body.innerText.includes("This is the first line of the time.")`;
  let last = await page.evaluate<number>(shown);
  while (last < LINES && !(await page.evaluate<boolean>(isWhole))) {
    await untilFrame(page, `document.querySelector(".log").scrollTop = 0`, `${shown} > ${last} || ${isWhole}`);
    last = await page.evaluate<number>(shown);
  }
  assert.ok(last >= LINES_MIN, `only ${last} lines came`);
  const long = await longest();
  await page.getByRole("button", { name: "Regular expression" }).click();
  const find = await untilFrame(
    page,
    `const box = document.querySelector("input[type=search]");
     Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(box, "request 777\\\\d took");
     box.dispatchEvent(new InputEvent("input", { bubbles: true }))`,
    `document.querySelector(".log .line")?.textContent.includes("request 777")`,
  );
  return [
    { what: `longest task while ${last} lines load`, value: long, limit: 50 },
    { what: `find in ${last} lines`, value: find, limit: 50 },
  ];
}

/** The server reads the output of a workload some time after the workload wrote it. */
async function untilKept(platform: TestPlatform): Promise<void> {
  const start = new Date(Date.now() - HOUR_MS).toISOString();
  const path = `/observability/logs/histogram?resourceType=sandboxes&workloadIds=${TALKER}&start=${start}`;
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    const { body } = await platform.call("GET", path, { workspace: "main" });
    if (body.total >= LINES) return;
    await setTimeout(LOOK_EVERY_MS);
  }
  throw new Error(`the log never had ${LINES} lines`);
}

async function tasks({ page, platform, open }: Visit): Promise<Figure[]> {
  const runtime = { image: "service/base-image:latest", command: ["true"], memory: 128, maxConcurrentTasks: 1 };
  const job = { metadata: { name: "many" }, spec: { runtime } };
  await platform.call("POST", "/jobs", { workspace: "main", body: job });
  const body = { tasks: Array.from({ length: TASKS }, () => ({})) };
  const started = await platform.call("POST", "/jobs/many/executions", { workspace: "main", body });
  assert.equal(started.status, 200, JSON.stringify(started.body));
  const id = String(started.body.executionId);
  await open("jobs/many?tab=executions");
  const link = page.getByRole("link", { name: id });
  await link.waitFor();
  const drawn = await untilFrame(
    page,
    `[...document.querySelectorAll("a")].find((one) => one.textContent === "${id}").click()`,
    `document.querySelector(".task-picture")?.getAttribute("aria-valuemax") === "${TASKS - 1}"`,
  );
  await platform.call("DELETE", `/jobs/many/executions/${id}`, { workspace: "main" });
  return [{ what: `${TASKS} tasks drawn after a click`, value: drawn, limit: 300 }];
}

async function terminal({ page, open }: Visit): Promise<Figure[]> {
  await open(`sandboxes/${TALKER}?tab=terminal`);
  const rows = `document.querySelector(".xterm-rows")`;
  await page.locator(".xterm-rows").getByText(/[#$]/).first().waitFor();
  await page.getByRole("textbox").focus();
  const cursorLine = `[...${rows}.children].filter((row) => row.textContent.trim() !== "").at(-1)?.textContent.trimEnd()`;
  const echoes: number[] = [];
  for (let at = 0; at < ECHOES; at += 1) {
    const letter = "abcdefghij"[at % 10] ?? "a";
    await page.evaluate(`window.was = ${cursorLine}.length`);
    const seen = untilFrame(page, "", `${cursorLine}.length > window.was`);
    const pressed = performance.now();
    await page.keyboard.press(letter);
    await seen;
    echoes.push(performance.now() - pressed);
  }
  await page.keyboard.press("Control+c");
  const ends: number[] = [];
  for (let at = 0; at < INTERRUPTS; at += 1) {
    await page.keyboard.type("yes");
    await page.keyboard.press("Enter");
    await untilFrame(page, "", `[...${rows}.children].every((row) => row.textContent.trim() === "y")`);
    const stopped = untilFrame(page, "", `/[#$]$/.test(${cursorLine} ?? "")`);
    const pressed = performance.now();
    await page.keyboard.press("Control+c");
    await stopped;
    ends.push(performance.now() - pressed);
  }
  return [
    { what: "terminal: key to echo, p95", value: p95(echoes), limit: 20 },
    { what: "terminal: Ctrl-C during `yes` to prompt, p95", value: p95(ends), limit: 100 },
  ];
}
