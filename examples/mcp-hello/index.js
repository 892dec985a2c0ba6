// An MCP server with two tools, over streamable HTTP without sessions: every request stands alone, so any number of
// copies can serve the same client. Clients begin with `initialize`, or with `server/discover` from 2026-07-28 on.
import { createServer } from "node:http";

const { HOST = "127.0.0.1", PORT = "8000" } = process.env;
const STATELESS = "2026-07-28";
const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const ABOUT = { capabilities: { tools: {} }, serverInfo: { name: "mcp-hello", version: "1.0.0" } };
const BODY_BYTES_MAX = 1024 * 1024;

const TOOLS = {
  greet: {
    description: "Greets somebody by name.",
    inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    run: ({ name }) => `Hello, ${name}!`,
  },
  add: {
    description: "Adds two numbers.",
    inputSchema: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
    run: ({ a, b }) => String(a + b),
  },
};

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: VERSIONS.includes(protocolVersion) ? protocolVersion : VERSIONS[0],
    ...ABOUT,
  }),
  "server/discover": () => ({ supportedVersions: [STATELESS, ...VERSIONS], ...ABOUT, ttlMs: 0, cacheScope: "private" }),
  ping: () => ({}),
  "tools/list": () => ({
    tools: Object.entries(TOOLS).map(([name, { run: _run, ...tool }]) => ({ name, ...tool })),
  }),
  "tools/call": ({ name, arguments: given = {} }) => {
    const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
    if (!tool) throw new Refusal(-32602, `There is no tool '${name}'.`);
    const wrong = Object.entries(tool.inputSchema.properties).find(([key, { type }]) => typeof given[key] !== type);
    if (wrong) return { content: [{ type: "text", text: `${wrong[0]} must be a ${wrong[1].type}.` }], isError: true };
    return { content: [{ type: "text", text: tool.run(given) }] };
  },
};

class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const server = createServer(async (request, response) => {
  if (new URL(request.url, "http://host").pathname !== "/mcp") return send(response, 404, { error: "see /mcp" });
  if (request.method !== "POST") {
    response.setHeader("allow", "POST");
    return send(response, 405, { error: "POST JSON-RPC messages here" });
  }
  let message;
  try {
    message = JSON.parse(await read(request));
  } catch (error) {
    return send(response, 400, { jsonrpc: "2.0", id: null, error: { code: -32700, message: error.message } });
  }
  // Notifications and answers are taken note of, and need no reply.
  if (message.id === undefined || message.method === undefined) return response.writeHead(202).end();
  const stateless = request.headers["mcp-protocol-version"] === STATELESS;
  const { error, result } = answer(message);
  const outcome = error ? { error } : { result: stateless ? { resultType: "complete", ...result } : result };
  send(response, error?.code === -32601 ? 404 : 200, { jsonrpc: "2.0", id: message.id, ...outcome });
});

function answer({ method, params = {} }) {
  const handle = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
  if (!handle) return { error: { code: -32601, message: `There is no method '${method}'.` } };
  try {
    return { result: handle(params) };
  } catch (error) {
    return { error: { code: error.code ?? -32603, message: error.message } };
  }
}

async function read(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new Error("the body is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function send(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

server.listen(Number(PORT), HOST, () => console.log(`listening on http://${HOST}:${server.address().port}`));
process.on("SIGTERM", () => server.close(() => process.exit(0)));
