/** An MCP server whose session ends after its first list of tools, and whose result tries to be a page. */
import type { RequestListener, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

interface Message {
  id?: number;
  method: string;
  params?: { arguments?: unknown };
}

const TOOL = {
  name: "shout",
  description: "<i>Says it</i>",
  inputSchema: { properties: { "a.b": { type: "string" } } },
};

export function sessionMcp(): RequestListener {
  let [begun, listed] = [0, 0];
  const results: Readonly<Record<string, (message: Message, response: ServerResponse) => unknown>> = {
    initialize(_message, response) {
      begun += 1;
      response.setHeader("mcp-session-id", `session-${begun}`);
      return { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } };
    },
    "tools/list"() {
      listed += 1;
      return { tools: [TOOL] };
    },
    "tools/call": ({ params }) => ({
      content: [{ type: "text", text: `<b>${JSON.stringify(params?.arguments)}</b>` }],
    }),
  };
  return async (request, response) => {
    const message = JSON.parse((await text(request)) || "{}") as Message;
    const session = request.headers["mcp-session-id"];
    const isOver = message.method === "tools/call" && begun === 1 && listed > 0;
    if (message.method !== "initialize" && (session !== `session-${begun}` || isOver)) {
      response.writeHead(404).end();
      return;
    }
    if (message.id === undefined) {
      response.writeHead(202).end();
      return;
    }
    const result = results[message.method]?.(message, response);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const note = { jsonrpc: "2.0", method: "notifications/message", params: {} };
    for (const one of [note, { jsonrpc: "2.0", id: message.id, result }])
      response.write(`event: message\ndata: ${JSON.stringify(one)}\n\n`);
    response.end();
  };
}
