/** Runs the lines of "Copy as…": with curl, the command line and the SDK, which must all tell the same. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { Berth } from "../../sdk/typescript/src/index.ts";
import type { TestPlatform } from "../platform.ts";

/** A command starts, asks and ends, also on a busy machine. */
const COMMAND_MS = 120_000;
/** What is used right now differs from one question to the next. */
const TRIES = 5;

export interface CopiedLines {
  curl: string;
  cli: string | null;
  sdk: string;
}

/** The lines that the page offers. */
export async function copiedLines(page: Page): Promise<CopiedLines> {
  await page.getByRole("button", { name: "Copy as…" }).first().click();
  const dialog = page.getByRole("dialog", { name: "The same from elsewhere" });
  await dialog.getByRole("heading", { name: "curl" }).waitFor();
  const titles = await dialog.getByRole("heading", { level: 3 }).allTextContents();
  const texts = await dialog.locator("pre").allTextContents();
  const line = (title: string): string | null => texts[titles.indexOf(title)] ?? null;
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  return { curl: line("curl") ?? "", cli: line("CLI"), sdk: line("SDK") ?? "" };
}

export async function assertSame(platform: TestPlatform, { curl, cli, sdk }: CopiedLines): Promise<void> {
  const env = {
    ...{ PATH: process.env.PATH ?? "", HOME: platform.dataDir, BERTH_DATA: platform.dataDir },
    ...{ BERTH_API_KEY: platform.apiKey, BERTH_URL: platform.url },
  };
  const berth = `"${process.execPath}" "${join(import.meta.dirname, "../../src/main.ts")}"`;
  const run = async (line: string): Promise<unknown> =>
    JSON.parse((await promisify(execFile)("sh", ["-c", line], { env, timeout: COMMAND_MS })).stdout);
  const client = new Berth({ url: platform.url, apiKey: platform.apiKey, workspace: "main" });
  const ask = new Function("berth", `return ${sdk.replace(/^await /, "")}`) as (berth: Berth) => Promise<unknown>;
  for (let left = TRIES; ; left -= 1)
    try {
      const told = shown(await run(curl));
      assert.deepEqual(shown(await answerOf(ask(client))), told, sdk);
      if (cli !== null) assert.deepEqual(shown(await run(`${cli.replace(/^berth/, berth)} -o json`)), told, cli);
      return;
    } catch (error) {
      if (left <= 1) throw error;
    }
}

/** The SDK answers lists with something to go through. */
async function answerOf(asked: unknown): Promise<unknown> {
  const answer = await asked;
  if (typeof answer !== "object" || answer === null || !(Symbol.asyncIterator in answer)) return answer;
  const entries: unknown[] = [];
  for await (const entry of answer as AsyncIterable<unknown>) entries.push(entry);
  return entries;
}

/** The time of the answer itself. */
const OWN_TIME = "time";
/** Members that are others a moment later. */
const MOVING = /^(usage|cost|totalCost|today|expiresIn|lastUsedAt)$/;
const still = (key: string, value: unknown): unknown =>
  MOVING.test(key) && typeof value !== "object" ? typeof value : value;

/** The entries of a page of a list, as commands show them. */
function shown(answer: unknown): unknown {
  const data = (answer as { data?: unknown } | null)?.data;
  const told = JSON.parse(JSON.stringify(Array.isArray(data) ? data : answer), still) as unknown;
  if (typeof told === "object" && told !== null && !Array.isArray(told)) Reflect.deleteProperty(told, OWN_TIME);
  return told;
}
