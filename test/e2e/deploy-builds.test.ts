/** Projects of several kinds are built on this machine's own driver, without a network. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { deploySuite, type Files, hasFailed, isDeployed, says } from "../deploy-suite.ts";
import { memoryMissing } from "../local/machine.ts";
import { machineSkip } from "../sandbox-suite.ts";

/** The base image has the machine's own programs, not those of whoever runs the tests. */
const NO_PIP =
  spawnSync("/usr/bin/python3", ["-m", "pip", "--version"]).status === 0
    ? false
    : "pip is not installed for /usr/bin/python3; install python3-pip to run this test";

const server = (expression: string): string =>
  `const http = require("node:http");
   http.createServer((request, response) => response.end(JSON.stringify({ word: ${expression} })))
     .listen(process.env.PORT, process.env.HOST);`;

describe("builds on this machine", { skip: machineSkip }, () => {
  const suite = deploySuite({ idle_after: "60", pool_size: "0" });
  const { create, reaches, wordOf } = suite;
  before(suite.start);
  after(suite.stop);

  const eventsOf = async (name: string): Promise<string[]> =>
    (await reaches(name, isDeployed)).events.map(({ type }: { type: string }) => type);

  /** With a lock file that npm has written itself. */
  function npmProject(): Files {
    const folder = mkdtempSync(join(tmpdir(), "berth-npm-"));
    const files: Record<string, string> = {
      "dep/package.json": JSON.stringify({ name: "dep", version: "1.0.0", main: "index.js" }),
      "dep/index.js": 'module.exports = "from a dependency";',
      "package.json": JSON.stringify({ name: "app", version: "1.0.0", dependencies: { dep: "file:./dep" } }),
      "index.js": server('require("dep")'),
    };
    try {
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), content);
      }
      execFileSync("npm", ["install", "--package-lock-only", "--offline", "--no-audit"], {
        cwd: folder,
        stdio: "ignore",
      });
      return { ...files, "package-lock.json": readFileSync(join(folder, "package-lock.json"), "utf8") };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  test("Node with a lock file: dependencies are installed, and the same source is built once", async () => {
    const project = npmProject();
    await create("locked", project);
    assert.deepEqual(await eventsOf("locked"), ["created", "uploading", "uploaded", "building", "built", "deployed"]);
    assert.equal(await wordOf("locked"), "from a dependency");
    await create("again", project);
    assert.deepEqual(await eventsOf("again"), ["created", "uploading", "uploaded", "built", "deployed"]);
    assert.equal(await wordOf("again"), "from a dependency");
  });

  test("variables of the build reach the build alone", async () => {
    await create("asked", {
      "package.json": JSON.stringify({ scripts: { build: "node make.js" }, main: "index.js" }),
      "make.js": 'require("node:fs").writeFileSync("word.txt", process.env.WORD)',
      "index.js": server(
        'require("node:fs").readFileSync("word.txt", "utf8") + String(process.env.WORD) + require("node:fs").existsSync(".env.build")',
      ),
      ".env.build": "WORD=built",
    });
    await reaches("asked", isDeployed);
    assert.equal(await wordOf("asked"), "builtundefinedfalse");
  });

  test("a lock file that does not fit is told with npm's own words", async () => {
    const project = { ...npmProject(), "package.json": JSON.stringify({ dependencies: { other: "file:./dep" } }) };
    await create("unfit", project);
    const { events } = await reaches("unfit", hasFailed);
    assert.match(events.at(-1).message, /build failed: exit code 1.*berth logs agent\/unfit --build$/s);
    const { stdout } = await suite.berth(["logs", "agent/unfit", "--build", "--plain"]);
    assert.match(stdout, /package-lock\.json[\s\S]*Missing: other@/);
  });

  test("Python with a wheel in the project", { skip: NO_PIP }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-wheel-"));
    const wheel = "said-1.0-py3-none-any.whl";
    const make = `
import zipfile, sys
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("said.py", "WORD = 'from a wheel'\\n")
    z.writestr("said-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: said\\nVersion: 1.0\\n")
    z.writestr("said-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("said-1.0.dist-info/RECORD", "said.py,,\\nsaid-1.0.dist-info/METADATA,,\\nsaid-1.0.dist-info/WHEEL,,\\nsaid-1.0.dist-info/RECORD,,\\n")`;
    execFileSync("/usr/bin/python3", ["-c", make, join(folder, wheel)]);
    await create("snake", {
      [`wheels/${wheel}`]: readFileSync(join(folder, wheel)),
      "requirements.txt": `./wheels/${wheel}\n`,
      "main.py": `
import json, os
from http.server import BaseHTTPRequestHandler, HTTPServer
import said
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"word": said.WORD}).encode())
HTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Handler).serve_forever()`,
    });
    rmSync(folder, { recursive: true, force: true });
    await reaches("snake", isDeployed);
    assert.equal(await wordOf("snake"), "from a wheel");
  });

  test("a finished program is started as it is", async () => {
    await create("finished", { main: `#!/usr/bin/env node\n${server('"finished"')}` });
    await reaches("finished", isDeployed);
    assert.equal(await wordOf("finished"), "finished");
  });

  test("what cannot be built is FAILED with what to do", async () => {
    await create("gopher", { "go.mod": "module x", "main.go": "package main" });
    const { events } = await reaches("gopher", hasFailed);
    assert.match(events.at(-1).message, /Go is not built here/);
  });

  test("functions and applications are deployed like agents", async () => {
    await create("tools", says("function"), {}, "functions");
    await create("site", { "index.js": server("process.env.PORT") }, { port: 3456 }, "applications");
    await reaches("tools", isDeployed, "functions");
    assert.equal(await wordOf("tools", "functions"), "function");
    await reaches("site", isDeployed, "applications");
    const open = await fetch(`${suite.platform().url}/main/applications/site`);
    assert.deepEqual([open.status, await open.json()], [200, { word: "3456" }]);
  });

  test("too little memory is called by its name", async (t) => {
    const { body: offered } = await suite.call("GET", "/configuration");
    const missing = memoryMissing(offered.regions[0].isolation.limits);
    if (missing) return t.skip(missing);
    const eats = `const http = require("node:http"); const all = [];
      http.createServer((request, response) => { for (;;) all.push(Buffer.alloc(8 * 1024 * 1024, 1)); })
        .listen(process.env.PORT, process.env.HOST);`;
    await create("greedy", { "index.js": eats }, { runtime: { memory: 128 } });
    await reaches("greedy", isDeployed);
    await (await suite.ask("greedy")).text();
    const { events } = await reaches("greedy", (agent) => agent.events.at(-1).type === "crashed");
    assert.match(events.at(-1).message, /out of memory/);
  });
});
