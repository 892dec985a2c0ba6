import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { recipeFor } from "./start-command.ts";

test("what is there says how it is built and started", async () => {
  const dependencies = { dependencies: { x: "1" } };
  const manifest = (fields: object): string => JSON.stringify(fields);
  const rows: [files: Record<string, string>, build: RegExp | null, start: string][] = [
    [{ "index.js": "" }, null, "node index.js"],
    [{ "main.py": "" }, null, "python3 main.py"],
    [{ "package.json": manifest({ scripts: { start: "node a.js" } }) }, null, "node a.js"],
    [{ "package.json": manifest(dependencies), "index.js": "" }, /^npm install .*--omit=dev$/, "node index.js"],
    [
      { "package.json": manifest(dependencies), "package-lock.json": "{}", "index.js": "" },
      /^npm ci .*--omit=dev$/,
      "node index.js",
    ],
    [
      { "package.json": manifest({ ...dependencies, scripts: { build: "x" } }), "index.js": "" },
      /^npm install [^&]*fund && npm run build$/,
      "node index.js",
    ],
    [
      { "package.json": manifest(dependencies), "pnpm-lock.yaml": "", "index.js": "" },
      /pnpm install --frozen/,
      "node index.js",
    ],
    [
      { "package.json": manifest(dependencies), "yarn.lock": "", "index.js": "" },
      /yarn install --frozen/,
      "node index.js",
    ],
    [{ "requirements.txt": "x==1", "app.py": "" }, /-m pip install .*-r requirements\.txt/, "python3 app.py"],
    [{ "requirements.txt": "# nothing\n\n", "app.py": "" }, null, "python3 app.py"],
    [{ "pyproject.toml": "", "main.py": "" }, /uv pip install .* \.;/, "python3 main.py"],
    [{ "berth.toml": '[entrypoint]\nprod = "./run"', "index.js": "" }, null, "./run"],
  ];
  for (const [files, build, start] of rows)
    await inFolder(files, async (folder) => {
      const recipe = await recipeFor(folder, "service");
      assert.equal(recipe.start, start, JSON.stringify(files));
      if (build === null) assert.equal(recipe.build, null, JSON.stringify(files));
      else assert.match(recipe.build ?? "", build);
    });
});

test("variables of the build come from its file and from the deploy file", async () => {
  const files = { "index.js": "", ".env.build": "A=1\nB=1", "berth.toml": "[build]\nslim = true\n[build.args]\nB = 2" };
  await inFolder(files, async (folder) => {
    assert.deepEqual((await recipeFor(folder, "service")).buildEnv, { A: "1", B: "2" });
  });
});

test("what cannot be built is refused with what to do", async () => {
  const rows: [files: Record<string, string>, message: RegExp][] = [
    [{ "go.mod": "" }, /^Go is not built here: send the finished program/],
    [{ "pom.xml": "" }, /^Java is not built here/],
    [{ "README.md": "" }, /^There is nothing to start/],
    [{ "package.json": "{}" }, /no start script/],
    [{ "package.json": "{" }, /cannot be read as JSON/],
    [{ "berth.toml": "=" }, /cannot be read as TOML/],
    [{ "requirements.txt": "x" }, /no main\.py/],
  ];
  for (const [files, message] of rows)
    await inFolder(files, (folder) => assert.rejects(recipeFor(folder, "service"), { message }));
});

async function inFolder(files: Record<string, string>, work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "recipe-"));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("an MCP server on standard input and output is recognised by its command or its code", async () => {
  const http = 'import { StreamableHTTPServerTransport } from "x"; createServer(handle).listen(process.env.PORT);';
  const stdio = 'import { StdioServerTransport } from "x"; await server.connect(new StdioServerTransport());';
  const rows: [stdio: boolean, files: Record<string, string>][] = [
    [true, { "service.toml": '[entrypoint]\nprod = "npx -y @modelcontextprotocol/server-everything"' }],
    [true, { "service.toml": '[entrypoint]\nprod = "uvx mcp-server-time"' }],
    [true, { "index.js": stdio }],
    [true, { "main.py": "async with stdio_server() as streams:" }],
    [true, { "main.py": 'mcp.run(transport="stdio")' }],
    [false, { "index.js": http }],
    [false, { "index.js": `${stdio}${http}` }],
    [false, { "main.py": 'mcp.run(transport="streamable-http")' }],
    [false, { "index.js": "x".repeat(2 * 1024 * 1024) }],
    [false, { "service.toml": '[entrypoint]\nprod = "node ../../etc/index.js"' }],
  ];
  for (const [expected, files] of rows)
    await inFolder(files, async (folder) => {
      const { stdio: found } = await recipeFor(folder, "service");
      assert.equal(found, expected, JSON.stringify(files).slice(0, 200));
    });
});
