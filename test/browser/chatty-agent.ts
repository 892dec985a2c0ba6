/** An agent that speaks in two parts, keeps its threads, and tries to be a page; at `/mcp` it is an MCP server. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { sessionMcp } from "./session-mcp.ts";

export interface ChattyAgent {
  port: number;
  /** Lets the agent say the second part of its answer. */
  goOn(): void;
  stop(): void;
}

export async function startChattyAgent(
  remember: (thread: string, messages: readonly object[]) => Promise<unknown>,
): Promise<ChattyAgent> {
  let goOn = (): void => {};
  const isTime = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const mcp = sessionMcp();
  const server = createServer(async (request, response) => {
    if (request.url === "/mcp") return mcp(request, response);
    const body = await text(request);
    if (request.method !== "POST" || request.url !== "/") {
      response.writeHead(404, { "content-type": "text/html" }).end(`<b>${request.method} ${request.url} ${body}</b>`);
      return;
    }
    const { inputs } = JSON.parse(body) as { inputs: string };
    response.writeHead(200, { "content-type": "text/event-stream" });
    const say = (part: string): void => void response.write(`data: ${JSON.stringify(part)}\n\n`);
    say("<img src=x>");
    await isTime;
    const content = `<img src=x> heard ${inputs}`;
    await remember(String(request.headers["x-service-thread-id"]), [
      { role: "user", content: inputs },
      { role: "assistant", content },
    ]);
    say(` heard ${inputs}`);
    response.end("data: [DONE]\n\n");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    goOn: () => goOn(),
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
