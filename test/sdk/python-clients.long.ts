/** The Python SDK with the official clients of OpenAI and Anthropic, and under `mypy --strict`. Needs a registry for pip. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { installation } from "../installed/installation.ts";
import { examplesOf } from "./examples.ts";
import { CHECKOUT, printed, sdkPlace } from "./place.ts";
import { pythonEnvironment } from "./python-suite.ts";

const run = promisify(execFile);
const place = sdkPlace(await installation(), "main");
const folder = place.folder("sdk-python-clients");
const skip = pythonEnvironment(place, folder, ["openai", "anthropic", "mypy"]);
const runPython = async (args: readonly string[]): Promise<string> =>
  (await run(join(folder, "venv/bin/python"), [...args], { cwd: folder, env: place.env }).catch(printed)).stdout;

test("the official clients work with a token of the SDK", { skip }, async () => {
  const examples = examplesOf(join(CHECKOUT, "sdk/python/README.md"), "python");
  const code = examples.find((example) => example.code.includes("from openai"))?.code ?? "";
  assert.equal(await runPython(["-c", code]), "hello\nhello\n");
});

test("types are right for a strict consumer", { skip }, async () => {
  await runPython(["-m", "mypy", "--strict", join(CHECKOUT, "test/sdk/python/consumer.py")]);
});
