// An MCP server on standard input and output, one JSON message per line, as desktop clients start it. Deployed as a
// function it is served over HTTP, with a process of its own for every session: the notes below are one session's.
import { createInterface } from "node:readline";

const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const notes = [];

const TOOLS = {
  remember: {
    description: "Keeps a note until the session ends.",
    inputSchema: { type: "object", properties: { note: { type: "string" } }, required: ["note"] },
    run({ note }) {
      if (typeof note !== "string" || note === "") throw new Error("note must be a text.");
      notes.push(note);
      return `${notes.length} kept.`;
    },
  },
  recall: {
    description: "Lists the notes of this session.",
    inputSchema: { type: "object", properties: {} },
    run: () => notes.join("\n"),
  },
};

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: VERSIONS.includes(protocolVersion) ? protocolVersion : VERSIONS[0],
    capabilities: { tools: {} },
    serverInfo: { name: "mcp-stdio", version: "1.0.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({
    tools: Object.entries(TOOLS).map(([name, { run: _run, ...tool }]) => ({ name, ...tool })),
  }),
  "tools/call": ({ name, arguments: given = {} }) => {
    if (!Object.hasOwn(TOOLS, name)) throw Object.assign(new Error(`There is no tool '${name}'.`), { code: -32602 });
    try {
      return { content: [{ type: "text", text: TOOLS[name].run(given) }] };
    } catch (error) {
      return { content: [{ type: "text", text: error.message }], isError: true };
    }
  },
};

function answer({ method, params = {} }) {
  if (!Object.hasOwn(METHODS, method)) return { error: { code: -32601, message: `There is no method '${method}'.` } };
  try {
    return { result: METHODS[method](params) };
  } catch (error) {
    return { error: { code: error.code ?? -32603, message: error.message } };
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  // Notifications and answers need no reply.
  if (message.id === undefined || message.method === undefined) return;
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, ...answer(message) })}\n`);
});
// Standard output belongs to the protocol; what is for the log goes to standard error.
console.error("ready");
