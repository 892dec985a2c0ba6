import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { recipeFor } from "./start-command.ts";

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
  for (const [expected, files] of rows) {
    const folder = mkdtempSync(join(tmpdir(), "recipe-"));
    try {
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
      const { stdio: found } = await recipeFor(folder, "service");
      assert.equal(found, expected, JSON.stringify(files).slice(0, 200));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
});
