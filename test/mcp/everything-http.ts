/** Listens where HOST and PORT say, for both eras: sessions with streams that can be resumed, and requests on their own. */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import {
  createMcpHandler,
  type EventStore,
  hostHeaderValidationResponse,
  isInitializeRequest,
  isLegacyRequest,
  localhostAllowedHostnames,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { everythingServer } from "./everything-server.ts";
import { fetchListener } from "./fetch-listener.ts";

const modern = createMcpHandler(
  (context) =>
    everythingServer(context, {
      toolsChanged: () => modern.notify.toolsChanged(),
      promptsChanged: () => modern.notify.promptsChanged(),
    }),
  { legacy: "reject" },
);
const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();

async function answer(request: Request): Promise<Response> {
  const refused = hostHeaderValidationResponse(request, localhostAllowedHostnames());
  if (refused) return refused;
  if (!(await isLegacyRequest(request))) return modern.fetch(request);
  const id = request.headers.get("mcp-session-id");
  if (id !== null) return sessions.get(id)?.handleRequest(request) ?? new Response(null, { status: 404 });
  const parsedBody: unknown = await request.clone().json();
  if (!isInitializeRequest(parsedBody)) return new Response("Begin with initialize.", { status: 400 });
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (opened) => void sessions.set(opened, transport),
    onsessionclosed: (closed) => void sessions.delete(closed),
    eventStore: eventStore(),
    retryInterval: 50,
  });
  await everythingServer({ era: "legacy" }).connect(transport);
  return transport.handleRequest(request);
}

/** Events of one session, in order. */
function eventStore(): EventStore {
  const kept: { stream: string; message: Parameters<EventStore["storeEvent"]>[1] }[] = [];
  return {
    storeEvent: async (stream, message) => String(kept.push({ stream, message }) - 1),
    async replayEventsAfter(last, { send }) {
      const { stream } = kept[Number(last)] ?? { stream: "" };
      for (const [index, event] of kept.entries())
        if (index > Number(last) && event.stream === stream && "jsonrpc" in event.message)
          await send(String(index), event.message);
      return stream;
    },
  };
}

createServer(fetchListener(answer)).listen(Number(process.env.PORT), process.env.HOST);
