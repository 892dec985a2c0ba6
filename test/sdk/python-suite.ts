/** The Python SDK: a wheel, installed into a virtual environment with httpx from the registry of this machine. */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { globSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { workloadsSkip } from "../installed/isolation.ts";
import { type Example, examplesOf, isPossible } from "./examples.ts";
import { CHECKOUT, kilobytes, printed, type SdkPlace } from "./place.ts";
import { outcomesIn, startReplay, VECTORS } from "./vectors.ts";

const run = promisify(execFile);
const TESTS = join(CHECKOUT, "test/sdk/python");
const WHEEL = "berth_sdk-0.1.0-py3-none-any.whl";
const QUICKSTART_LINES = 10;
/** Examples with official clients need many packages: python-clients.long.ts runs them. */
const needsClients = ({ code }: Example): boolean => /^from (openai|anthropic) /m.test(code);

/** Makes the environment with the SDK and more packages; answers why it cannot be made. */
export function pythonEnvironment(place: SdkPlace, folder: string, more: readonly string[]): string | false {
  const version = spawnSync("python3", ["-c", "import sys, venv, pip; print(sys.version_info >= (3, 10))"]);
  if (version.stdout?.toString().trim() !== "True") return "there is no python3 of version 3.10 with venv and pip";
  const venv = join(folder, "venv");
  // The pip of the machine fills the environment, which is quicker than giving it a pip of its own.
  const pip = ["-m", "pip", "--python", join(venv, "bin/python"), "-q", "--disable-pip-version-check"];
  const packages = ["httpx", "flit_core", ...more];
  const steps = [
    ["-m", "venv", "--without-pip", venv],
    [...pip, "install", "--no-compile", ...packages],
  ];
  for (const args of steps)
    if (spawnSync("python3", args).status !== 0) return `pip finds no registry with ${packages.join(", ")}`;
  const source = join(place.installed.root, "sdk/python");
  const wheel = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source];
  for (const args of [wheel, ["install", "--no-index", join(folder, WHEEL)]]) {
    const { status, stderr } = spawnSync("python3", [...pip, ...args], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  }
  return false;
}

export function pythonSuite(place: SdkPlace): void {
  const folder = place.folder("sdk-python");
  const python = join(folder, "venv/bin/python");
  const skip = pythonEnvironment(place, folder, []);
  const examples = ["sdk/python/README.md", "docs/sdk.md"].flatMap((page) =>
    examplesOf(join(CHECKOUT, page), "python"),
  );

  const runPython = async (args: readonly string[], env: Record<string, string>): Promise<string> =>
    (await run(python, [...args], { cwd: folder, env }).catch(printed)).stdout;

  describe("the wheel of the Python SDK", { skip }, () => {
    test("is small and needs httpx only", async (t) => {
      const asked = "import importlib.metadata as all; print(all.requires('berth-sdk'))";
      assert.match(await runPython(["-c", asked], place.env), /^\['httpx[^',]*,?[^',]*'\]$/m);
      const script = "import time; t = time.process_time(); import berth_sdk; print((time.process_time() - t) * 1000)";
      const httpx = "import httpx; ";
      const times = [script, httpx + script].map((text) => spawnSync(python, ["-c", text], { encoding: "utf8" }));
      const [all = 0, own = 0] = times.map(({ stdout }) => Number(stdout));
      const wheel = statSync(join(folder, WHEEL)).size;
      const files = globSync(join(folder, "venv/lib/*/site-packages/berth_sdk/**/*.py"));
      const code = files.reduce((sum, file) => sum + statSync(file).size, 0);
      const importing = `import ${all.toFixed(0)} ms, ${own.toFixed(0)} ms without httpx`;
      t.diagnostic(`wheel ${kilobytes(wheel)}, code ${kilobytes(code)}, ${importing}`);
    });

    for (const how of ["sync", "async"])
      test(`passes the test vectors (${how})`, async (t) => {
        const dataDir = place.folder(`vectors of python ${how}`);
        const replay = await startReplay(dataDir);
        t.after(() => replay.stop());
        const args = [join(TESTS, "vectors.py"), how, JSON.stringify(VECTORS), replay.url];
        const outcomes = outcomesIn(await runPython(args, { BERTH_DATA: dataDir }));
        for (const [index, { name }] of VECTORS.entries())
          await t.test(name, () => replay.check(index, outcomes[index]));
      });

    test("is introduced by a quickstart of ten lines", () => {
      const lines = examples[0]?.code.split("\n").filter((line) => line.trim() !== "") ?? [];
      assert.ok(lines.length <= QUICKSTART_LINES, `${lines.length} lines`);
    });
  });

  describe("the Python SDK against an installation", { skip: skip || workloadsSkip }, () => {
    test("every example works as written", async () => {
      const script = examples
        .filter((example) => isPossible(example.code) && !needsClients(example))
        .map(({ code }) => code);
      const said = await runPython(["-c", script.join("\n\n")], place.env);
      for (const answer of [/^0 45\n/, /one\n two/, /You said: hello/, /Hello, Ada!/, /succeeded 2/, /not_found 404/])
        assert.match(said, answer);
    });

    test("commands, files and creates behave", async () => {
      const { done } = JSON.parse(await runPython([join(TESTS, "behaviour.py")], place.env)) as { done: unknown };
      assert.deepEqual(done, JSON.parse(readFileSync(join(CHECKOUT, "test/sdk/behaviour.json"), "utf8")));
    });
  });
}
