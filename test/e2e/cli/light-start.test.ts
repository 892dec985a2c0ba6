/** What a command loads before it does anything: libraries of other commands stay on the disk. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { spawnBerth } from "../../berth-process.ts";

/** Prints the package or folder of every module that is loaded. Hooks that are registered last are asked first. */
const LISTING = `import module from "node:module";
const loaded = new Set();
const { registerHooks } = module;
const list = () => registerHooks({ load(url, context, next) {
  loaded.add(/node_modules\\/(?:@[^/]+\\/)?[^/]+|\\/src\\/[^/]+/.exec(url)?.[0] ?? "");
  return next(url, context);
} });
module.registerHooks = (hooks) => { registerHooks(hooks); list(); };
list();
process.on("exit", () => {
  if (process.moduleLoadList.some((name) => name.endsWith("undici/undici"))) loaded.add("fetch");
  console.error("loaded " + [...loaded].join(" "));
});`;

/** `fetch` is Node's own, which is loaded when a program first uses it. */
const loadedBy = async (
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ stdout: string; loaded: string[] }> => {
  const hook = `--import data:text/javascript,${encodeURIComponent(LISTING)}`;
  const { stdout, stderr } = await spawnBerth(args, { env: { ...env, NODE_OPTIONS: hook } }).ended;
  const [, words = ""] = /^loaded (.*)$/m.exec(stderr) ?? assert.fail(stderr);
  return { stdout, loaded: words.split(" ").map((word) => word.replace(/^.*\//, "")) };
};

test("the version is printed without the command line", async () => {
  for (const flag of ["--version", "-V"]) {
    const { stdout, loaded } = await loadedBy([flag]);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
    for (const word of ["zod", "commander", "kinds", "cli"]) assert.ok(!loaded.includes(word), `${flag} loads ${word}`);
  }
});

test("a command loads no library for files, models or the server", async () => {
  for (const args of [["sandbox", "--help"], ["--help"]]) {
    const { loaded } = await loadedBy(args);
    assert.ok(loaded.includes("commander"));
    for (const word of ["yaml", "undici", "pg", "jose", "fastify", "marked", "app.ts", "gateway"])
      assert.ok(!loaded.includes(word), `${args.join(" ")} loads ${word}`);
  }
});

test("a list is asked for without the libraries of other commands, and without fetch", async (t) => {
  const server = createServer((_, response) => response.setHeader("content-type", "application/json").end("[]"));
  server.listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { stdout, loaded } = await loadedBy(["drive", "list", "-o", "json"], {
    BERTH_URL: url,
    BERTH_API_KEY: "a-key",
  });
  assert.deepEqual(JSON.parse(stdout), []);
  for (const word of ["fetch", "yaml", "undici"]) assert.ok(!loaded.includes(word), `a list loads ${word}`);
});
