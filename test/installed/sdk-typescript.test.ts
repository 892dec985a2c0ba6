/**
 * The TypeScript SDK as a stranger has it: packed, installed from the file into an empty folder, compiled with `tsc
 * --strict`, and used from there by Node, the Node of this machine and Bun against an installation.
 */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { promisify } from "node:util";
import { type Example, examplesOf } from "../sdk/examples.ts";
import { type Outcome, startReplay, VECTORS } from "../sdk/vectors.ts";
import { commandOf, folderOf } from "./command.ts";
import { installation, strangersEnv } from "./installation.ts";
import { workloadsSkip } from "./isolation.ts";
import { apiOf } from "./suite.ts";

const run = promisify(execFile);
const WORKSPACE = "sdk-typescript";
const CHECKOUT = join(import.meta.dirname, "../..");
const NODE_OLDEST = 18;
const noPython = spawnSync("/usr/bin/python3", ["--version"]).status !== 0;

const installed = await installation();
const { root, home, url, apiKey } = installed;
const { call, make } = apiOf(installed, WORKSPACE);
const folder = folderOf(installed, "sdk-typescript");
const env = strangersEnv({ home, BERTH_WORKSPACE: WORKSPACE });

/** Runtimes of this machine, and the command that starts each. */
const RUNTIMES: Readonly<Record<string, string | null>> = {
  "the Node of Berth": process.execPath,
  "the Node of this machine": nodeHere(),
  Bun: bunHere(),
};

function nodeHere(): string | null {
  const { stdout } = spawnSync("node", ["-p", "process.version + ' ' + process.execPath"], { env, encoding: "utf8" });
  const [, major = "0", path = ""] = /^v(\d+)\S* (\S+)/.exec(stdout ?? "") ?? [];
  return Number(major) >= NODE_OLDEST ? path : null;
}

function bunHere(): string | null {
  const names = process.arch === "arm64" ? ["@oven/bun-linux-aarch64"] : ["@oven/bun-linux-x64"];
  const found = names.map((name) => join(CHECKOUT, "node_modules", name, "bin/bun")).filter(existsSync);
  return found[0] ?? null;
}

const STRICT = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"];
const MODULES = ["--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable,dom.asynciterable"];

const compile = (files: readonly string[], more: readonly string[]): Promise<unknown> =>
  run(join(CHECKOUT, "node_modules/.bin/tsc"), [...STRICT, ...MODULES, "--outDir", "out", ...more, ...files], {
    cwd: folder,
  }).catch((error: { stdout?: string }) => assert.fail(error.stdout ?? String(error)));

const fileOf = (index: number): string => `example-${index}`;
const examples = ["sdk/typescript/README.md", "docs/sdk.md"]
  .flatMap((page) => examplesOf(join(CHECKOUT, page), "ts"))
  .map((example, index) => ({ ...example, index }));
const needsServer = ({ code }: Example): boolean => noPython && code.includes("python3 -m");

before(async () => {
  mkdirSync(folder, { recursive: true });
  await run("npm", ["pack", "--pack-destination", folder], { cwd: join(root, "sdk/typescript"), env });
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "./berth-sdk-0.1.0.tgz"], { cwd: folder, env });
  const made = await call("POST", "/workspaces", { body: { name: WORKSPACE } });
  assert.ok([200, 409].includes(made.status), JSON.stringify(made.body));
});

test("the packed SDK is small and brings nothing along", (t) => {
  const installedPackages = readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."));
  assert.deepEqual(installedPackages, ["@berth"]);
  const place = join(folder, "node_modules/@berth/sdk");
  const files = readdirSync(place, { recursive: true, encoding: "utf8" }).map((name) => join(place, name));
  const code = files.filter((file) => file.endsWith(".js")).reduce((sum, file) => sum + statSync(file).size, 0);
  assert.ok(!files.some((file) => file.endsWith(".ts") && !file.endsWith(".d.ts")), "no sources in the package");
  const script = "const t = performance.now(); await import('@berth/sdk'); console.log(performance.now() - t)";
  const times = Array.from({ length: 3 }, () =>
    Number(
      spawnSync(process.execPath, ["--input-type=module", "-e", script], { cwd: folder, encoding: "utf8" }).stdout,
    ),
  );
  const packed = statSync(join(folder, "berth-sdk-0.1.0.tgz")).size;
  t.diagnostic(`packed ${kb(packed)}, code ${kb(code)}, import ${Math.min(...times).toFixed(1)} ms`);
});

const kb = (bytes: number): string => `${(bytes / 1024).toFixed(1)} kB`;

test("types are right for a strict consumer, without types of Node", async () => {
  for (const name of ["consumer.ts", "vectors.ts"])
    cpSync(join(CHECKOUT, "test/sdk/typescript", name), join(folder, name));
  await compile(["consumer.ts", "vectors.ts"], ["--types", ""]);
});

describe("test vectors of the TypeScript SDK", () => {
  for (const [runtime, command] of Object.entries(RUNTIMES)) {
    test(`on ${runtime}`, { skip: command === null && `there is no ${runtime}` }, async (t) => {
      const replay = await startReplay();
      t.after(() => replay.stop());
      const { stdout } = await run(command ?? "", ["out/vectors.js", JSON.stringify(VECTORS), replay.url], {
        cwd: folder,
      });
      const outcomes = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Outcome);
      for (const [index, { name }] of VECTORS.entries()) await t.test(name, () => replay.check(index, outcomes[index]));
    });
  }
});

describe("the TypeScript SDK against an installation", { skip: workloadsSkip }, () => {
  before(async () => {
    for (const name of ["openai", "@anthropic-ai"])
      symlinkSync(join(CHECKOUT, "node_modules", name), join(folder, "node_modules", name));
    for (const { code, index } of examples) writeFileSync(join(folder, `${fileOf(index)}.ts`), code);
    await compile(
      examples.map(({ index }) => `${fileOf(index)}.ts`),
      ["--skipLibCheck", "--types", ""],
    );
    writeFileSync(join(folder, "run.js"), "for (const file of process.argv.slice(2)) await import(file);\n");
    await make("/models", "own-model", { runtime: { type: "mock" } });
    await Promise.all([deployAgent(), deployTools()]);
  });

  /** An agent that asks a model with the SDK, as itself. */
  async function deployAgent(): Promise<void> {
    const agent = join(folder, "agent-echo");
    cpSync(join(CHECKOUT, "test/sdk/typescript/agent"), agent, { recursive: true });
    cpSync(join(folder, "node_modules/@berth/sdk/dist"), join(agent, "berth-sdk"), { recursive: true });
    await berth(["deploy", agent]);
  }

  async function deployTools(): Promise<void> {
    await berth(["deploy", join(root, "examples/mcp-hello")]);
  }

  async function berth(args: readonly string[]): Promise<void> {
    const ended = await commandOf(installed)(args, { workspace: WORKSPACE });
    assert.equal(ended.code, 0, `berth ${args.join(" ")}: ${ended.stdout}${ended.stderr}`);
  }

  const runExamples = async (command: string, which: readonly number[]): Promise<string> => {
    const files = which.map((index) => `./out/${fileOf(index)}.js`);
    const { stdout } = await run(command, ["run.js", ...files], { cwd: folder, env }).catch(
      (error: { stdout: string; stderr: string }) => assert.fail(error.stdout + error.stderr),
    );
    return stdout;
  };

  test("every example of its README works as written", async () => {
    const said = await runExamples(
      process.execPath,
      examples.filter((example) => !needsServer(example)).map(({ index }) => index),
    );
    for (const answer of [
      /^0 45\n/,
      /hello\nfrom stdin/,
      /You said: hello/,
      /Hello, Ada!/,
      /succeeded 2/,
      /not_found 404/,
    ])
      assert.match(said, answer);
  });

  for (const [runtime, command] of Object.entries(RUNTIMES).slice(1))
    test(`the quickstart works on ${runtime}`, { skip: command === null && `there is no ${runtime}` }, async () => {
      assert.match(await runExamples(command ?? "", [0]), /^0 45\n/);
    });

  test("code inside a workload calls the platform as itself", async () => {
    const answer = await fetch(`${url}/${WORKSPACE}/agents/agent-echo`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ inputs: "who?" }),
    });
    const { output, workspace, subject } = (await answer.json()) as Record<string, string>;
    assert.deepEqual([output, workspace], ["You said: who?", WORKSPACE]);
    assert.match(subject ?? "", /./);
  });
});

test("the README's quickstart has ten lines", () => {
  const [quickstart] = examples;
  const lines = quickstart?.code.split("\n").filter((line) => line.trim() !== "") ?? [];
  assert.ok(lines.length <= 10, `${lines.length} lines`);
});

// The SDK adds no package to the server: it has none itself.
test("the SDK has no dependencies", () => {
  const manifest = createRequire(import.meta.url)(join(CHECKOUT, "sdk/typescript/package.json")) as object;
  for (const list of ["dependencies", "peerDependencies", "optionalDependencies"]) assert.ok(!(list in manifest), list);
});
