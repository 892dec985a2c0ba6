/** Logs, tasks and a terminal, of real workloads. */
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { TestPlatform } from "../../test/platform.ts";
import type { Figure } from "./report.ts";
import { figuresOfTerminal } from "./terminal.ts";
import { untilFrame, type Visit, watchLongTasks } from "./visit.ts";

const LINES = 100_000;
/** The sandbox writes some lines of its own, and the page holds no more than LINES. */
const LINES_MIN = 99_000;
const TASKS = 100_000;
const TALKER = "talker";
const HOUR_MS = 3_600_000;
const LOOK_EVERY_MS = 200;
const LOOKS_MAX = 300;

export const WORKLOAD_PARTS = ["logs", "tasks", "terminal"] as const;

export async function figuresOfWorkloads(
  visit: Visit,
  parts: readonly (typeof WORKLOAD_PARTS)[number][],
): Promise<Figure[]> {
  const { platform } = visit;
  if (parts.length === 0) return [];
  if (!(await platform.app.runsWorkloads())) {
    console.log("This machine runs no workloads: logs, tasks and the terminal are left out.");
    return [];
  }
  const made = await platform.call("POST", "/sandboxes", {
    workspace: "main",
    body: { metadata: { name: TALKER }, spec: { runtime: { memory: 512 } } },
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const measures = { logs, tasks, terminal: (one: Visit) => figuresOfTerminal(one, TALKER) };
  const figures: Figure[] = [];
  try {
    for (const part of parts) figures.push(...(await measures[part](visit)));
  } finally {
    await platform.call("DELETE", `/sandboxes/${TALKER}`, { workspace: "main" }); // it would outlive the server
  }
  return figures;
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
  // Texts of elements: `innerText` of the page lays it out, and would itself be the longest task.
  const texts = `[...document.querySelectorAll("span.quiet")].map((one) => one.textContent)`;
  const shown = `Number(${texts}.join(" ").match(/([\\d,]+) lines? shown/)?.[1].replaceAll(",", "") ?? 0)`;
  const isWhole = `${texts}.includes("This is the first line of the time.")`;
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
