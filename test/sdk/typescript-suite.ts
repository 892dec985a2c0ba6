/** The TypeScript SDK: packed, compiled with `tsc --strict`, and used by Node, the Node of this machine and Bun. */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { promisify } from "node:util";
import { workloadsSkip } from "../installed/isolation.ts";
import { examplesOf, isPossible } from "./examples.ts";
import { CHECKOUT, kilobytes, printed, type SdkPlace } from "./place.ts";
import { outcomesIn, startReplay, VECTORS } from "./vectors.ts";

const run = promisify(execFile);
const TARBALL = "berth-sdk-0.1.0.tgz";
const NODE_OLDEST = 18;
const STRICT = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"];
const MODULES = ["--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable,dom.asynciterable"];
const QUICKSTART_LINES = 10;

export function typescriptSuite(place: SdkPlace): void {
  const { installed, workspace, env } = place;
  const folder = place.folder("sdk-typescript");
  const runtimes: Record<string, string | null> = {
    "the Node of Berth": process.execPath,
    "the Node of this machine": nodeHere(env),
    Bun: bunHere(),
  };
  const examples = ["sdk/typescript/README.md", "docs/sdk.md"]
    .flatMap((page) => examplesOf(join(CHECKOUT, page), "ts"))
    .map((example, index) => ({ ...example, index, name: `example-${index}` }));

  const compile = (files: readonly string[], more: readonly string[]): Promise<unknown> =>
    run(join(CHECKOUT, "node_modules/.bin/tsc"), [...STRICT, ...MODULES, "--outDir", "out", ...more, ...files], {
      cwd: folder,
    }).catch(printed);

  describe("the packed TypeScript SDK", () => {
    before(async () => {
      await run("npm", ["pack", "--pack-destination", folder], { cwd: join(installed.root, "sdk/typescript"), env });
      writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
      await run("npm", ["install", "--offline", "--no-audit", "--no-fund", `./${TARBALL}`], { cwd: folder, env });
      for (const name of ["consumer.ts", "vectors.ts"])
        cpSync(join(CHECKOUT, "test/sdk/typescript", name), join(folder, name));
    });

    test("is small and brings nothing along", (t) => {
      const packages = readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."));
      assert.deepEqual(packages, ["@berth"]);
      const files = readdirSync(join(folder, "node_modules/@berth/sdk"), { recursive: true, encoding: "utf8" });
      assert.ok(!files.some((file) => file.endsWith(".ts") && !file.endsWith(".d.ts")), "no sources in the package");
      const sizes = files.filter((file) => file.endsWith(".js")).map((file) => statSync(inPackage(file)).size);
      const code = sizes.reduce((sum, size) => sum + size, 0);
      const script = "const t = performance.now(); await import('@berth/sdk'); console.log(performance.now() - t)";
      const options = { cwd: folder, encoding: "utf8" } as const;
      const times = [1, 2, 3].map(() => spawnSync(process.execPath, ["--input-type=module", "-e", script], options));
      const importMs = Math.min(...times.map(({ stdout }) => Number(stdout)));
      const packed = statSync(join(folder, TARBALL)).size;
      t.diagnostic(`packed ${kilobytes(packed)}, code ${kilobytes(code)}, import ${importMs.toFixed(1)} ms`);
    });

    const inPackage = (file: string): string => join(folder, "node_modules/@berth/sdk", file);

    test("has the types that a strict consumer expects, without types of Node", async () => {
      await compile(["consumer.ts", "vectors.ts"], ["--types", ""]);
    });

    for (const [runtime, command] of Object.entries(runtimes)) {
      test(`passes the test vectors on ${runtime}`, {
        skip: command === null && `there is no ${runtime}`,
      }, async (t) => {
        const dataDir = place.folder(`vectors of ${runtime}`);
        const replay = await startReplay(dataDir);
        t.after(() => replay.stop());
        const { stdout } = await run(command ?? "", ["out/vectors.js", JSON.stringify(VECTORS), replay.url], {
          cwd: folder,
          env: { BERTH_DATA: dataDir },
        }).catch(printed);
        const outcomes = outcomesIn(stdout);
        for (const [index, { name }] of VECTORS.entries())
          await t.test(name, () => replay.check(index, outcomes[index]));
      });
    }

    test("is introduced by a quickstart of ten lines", () => {
      const lines = examples[0]?.code.split("\n").filter((line) => line.trim() !== "") ?? [];
      assert.ok(lines.length <= QUICKSTART_LINES, `${lines.length} lines`);
    });
  });

  describe("the TypeScript SDK against an installation", { skip: workloadsSkip }, () => {
    before(async () => {
      for (const name of ["openai", "@anthropic-ai"])
        symlinkSync(join(CHECKOUT, "node_modules", name), join(folder, "node_modules", name));
      for (const { code, name } of examples) writeFileSync(join(folder, `${name}.ts`), code);
      cpSync(join(CHECKOUT, "test/sdk/typescript/behaviour.ts"), join(folder, "behaviour.ts"));
      const files = ["behaviour.ts", ...examples.map(({ name }) => `${name}.ts`)];
      await compile(files, ["--skipLibCheck", "--types", ""]);
      writeFileSync(join(folder, "run.js"), "for (const file of process.argv.slice(2)) await import(file);\n");
      await place.make("/models", "own-model", { runtime: { type: "mock" } });
      await Promise.all([deployAgent(), place.deploy(join(installed.root, "examples/mcp-hello"))]);
    });

    /** An agent that asks a model with the SDK, as itself. */
    async function deployAgent(): Promise<void> {
      const agent = join(folder, "agent-echo");
      cpSync(join(CHECKOUT, "test/sdk/typescript/agent"), agent, { recursive: true });
      cpSync(join(folder, "node_modules/@berth/sdk/dist"), join(agent, "berth-sdk"), { recursive: true });
      await place.deploy(agent);
    }

    const runFiles = async (command: string, files: readonly string[]): Promise<string> => {
      const built = files.map((name) => `./out/${name}.js`);
      return (await run(command, ["run.js", ...built], { cwd: folder, env }).catch(printed)).stdout;
    };

    test("every example works as written", async () => {
      const possible = examples.filter(({ code }) => isPossible(code));
      const said = await runFiles(
        process.execPath,
        possible.map(({ name }) => name),
      );
      for (const answer of [/^0 45\n/, /You said: hello/, /Hello, Ada!/, /succeeded 2/, /not_found 404/])
        assert.match(said, answer);
    });

    for (const [runtime, command] of Object.entries(runtimes).slice(1))
      test(`the quickstart works on ${runtime}`, { skip: command === null && `there is no ${runtime}` }, async () => {
        assert.match(await runFiles(command ?? "", ["example-0"]), /^0 45\n/);
      });

    test("commands, files and creates behave", async () => {
      const { done } = JSON.parse(await runFiles(process.execPath, ["behaviour"])) as { done: unknown };
      assert.deepEqual(done, JSON.parse(readFileSync(join(CHECKOUT, "test/sdk/behaviour.json"), "utf8")));
    });

    test("code inside a workload calls the platform as itself", async () => {
      const { url, apiKey } = installed;
      const answer = await fetch(`${url}/${workspace}/agents/agent-echo`, {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({ inputs: "who?" }),
      });
      const { output, workspace: own, subject } = (await answer.json()) as Record<string, string>;
      assert.deepEqual([output, own], ["You said: who?", workspace]);
      assert.match(subject ?? "", /./);
    });
  });
}

function nodeHere(env: Record<string, string>): string | null {
  const { stdout } = spawnSync("node", ["-p", "process.version + ' ' + process.execPath"], { env, encoding: "utf8" });
  const [, major = "0", path = ""] = /^v(\d+)\S* (\S+)/.exec(stdout ?? "") ?? [];
  return Number(major) >= NODE_OLDEST ? path : null;
}

function bunHere(): string | null {
  const name = process.arch === "arm64" ? "@oven/bun-linux-aarch64" : "@oven/bun-linux-x64";
  const bun = join(CHECKOUT, "node_modules", name, "bin/bun");
  return existsSync(bun) ? bun : null;
}
