/** What a command loads before it does anything: libraries of other commands stay on the disk. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runBerth } from "../../berth-process.ts";

/** Prints the package or folder of every module that is loaded. */
const LISTING = `import { registerHooks } from "node:module";
const loaded = new Set();
registerHooks({ load(url, context, next) {
  loaded.add(/node_modules\\/(?:@[^/]+\\/)?[^/]+|\\/src\\/[^/]+/.exec(url)?.[0] ?? "");
  return next(url, context);
} });
process.on("exit", () => console.error("loaded " + [...loaded].join(" ")));`;

const loadedBy = async (...args: string[]): Promise<{ stdout: string; loaded: string[] }> => {
  const hook = `--import data:text/javascript,${encodeURIComponent(LISTING)}`;
  const { stdout, stderr } = await runBerth(args, { env: { NODE_OPTIONS: hook } });
  const [, words = ""] = /^loaded (.*)$/m.exec(stderr) ?? assert.fail(stderr);
  return { stdout, loaded: words.split(" ").map((word) => word.replace(/^.*\//, "")) };
};

test("the version is printed without the command line", async () => {
  for (const flag of ["--version", "-V"]) {
    const { stdout, loaded } = await loadedBy(flag);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
    for (const word of ["zod", "commander", "kinds", "cli"]) assert.ok(!loaded.includes(word), `${flag} loads ${word}`);
  }
});

test("a command loads no library for files, models or the server", async () => {
  for (const args of [["sandbox", "--help"], ["--help"]]) {
    const { loaded } = await loadedBy(...args);
    assert.ok(loaded.includes("commander"));
    for (const word of ["yaml", "undici", "pg", "jose", "fastify", "marked", "app.ts", "gateway"])
      assert.ok(!loaded.includes(word), `${args.join(" ")} loads ${word}`);
  }
});
