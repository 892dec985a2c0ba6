// An MCP server with two tools, over streamable HTTP without sessions: every request stands alone, so any number of
// copies can serve the same client. Your tools go here; protocol.js is what clients of every version expect around them.
import { createServer } from "node:http";
import { answer } from "./protocol.js";

const { HOST = "127.0.0.1", PORT = "8000" } = process.env;
const BODY_BYTES_MAX = 1024 * 1024;

const SERVER = {
  info: { name: "mcp-hello", version: "1.0.0" },
  tools: {
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
  },
};

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
  const { status, body } = answer(SERVER, message, request.headers);
  send(response, status, body);
});

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
  if (body === undefined) return response.writeHead(status).end();
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

server.listen(Number(PORT), HOST, () => console.log(`listening on http://${HOST}:${server.address().port}`));
process.on("SIGTERM", () => server.close(() => process.exit(0)));
