/**
 * A provider's realtime API, as far as its documentation tells the events: `session.created` first, and for each
 * `response.create` a response in events, with its usage in `response.done`.
 */
import { createServer, type IncomingMessage } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";
import { listen } from "./gateway-harness.ts";

export interface RealtimeServer extends AsyncDisposable {
  baseUrl: string;
  /** Handshakes, accepted or not. */
  handshakes: IncomingMessage[];
  /** Sessions that are open. */
  sockets: Set<WebSocket>;
  /** Events of clients. */
  received: Record<string, unknown>[];
}

export interface RealtimeOptions {
  /** Refuses handshakes with this status. */
  refuse?: number;
  usage?: Record<string, unknown>;
  /** A response ends after its first word, without usage. */
  stalls?: boolean;
  extensions?: boolean;
}

/** As in the documentation of `response.done`. */
export const USAGE = {
  total_tokens: 253,
  input_tokens: 132,
  output_tokens: 121,
  input_token_details: {
    ...{ text_tokens: 119, audio_tokens: 13, image_tokens: 0, cached_tokens: 64 },
    cached_tokens_details: { text_tokens: 64, audio_tokens: 0, image_tokens: 0 },
  },
  output_token_details: { text_tokens: 30, audio_tokens: 91 },
};

export async function startRealtime(options: RealtimeOptions = {}): Promise<RealtimeServer> {
  const server = createServer((_, res) => res.writeHead(426).end());
  const sessions = new WebSocketServer({ noServer: true, perMessageDeflate: options.extensions ?? false });
  const handshakes: IncomingMessage[] = [];
  const received: Record<string, unknown>[] = [];
  server.on("upgrade", (req, socket, head) => {
    handshakes.push(req);
    if (options.refuse) {
      const body = JSON.stringify({ error: { message: "no such model", type: "invalid_request_error" } });
      const fields = `content-type: application/json\r\ncontent-length: ${body.length}`;
      socket.end(`HTTP/1.1 ${options.refuse} No\r\n${fields}\r\n\r\n${body}`);
      return;
    }
    sessions.handleUpgrade(req, socket, head, (client) => converse(client, options, received));
  });
  const port = await listen(server);
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    handshakes,
    sockets: sessions.clients,
    received,
    async [Symbol.asyncDispose]() {
      for (const client of sessions.clients) client.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function converse(client: WebSocket, options: RealtimeOptions, received: Record<string, unknown>[]): void {
  let events = 0;
  let responses = 0;
  const send = (event: Record<string, unknown>): void => {
    events += 1;
    client.send(JSON.stringify({ event_id: `event_${events}`, ...event }));
  };
  client.on("message", (data) => {
    const event = JSON.parse(data.toString()) as Record<string, unknown>;
    received.push(event);
    if (event.type !== "response.create") return;
    responses += 1;
    const response_id = `resp_${responses}`;
    const response = { object: "realtime.response", id: response_id, output: [] };
    send({ type: "response.created", response: { ...response, status: "in_progress", usage: null } });
    const place = { response_id, item_id: "item_1", output_index: 0, content_index: 0 };
    send({ type: "response.output_text.delta", ...place, delta: "eight ch" });
    if (options.stalls) return;
    send({ type: "response.output_audio.delta", ...place, delta: "A".repeat(70_000) });
    send({ type: "response.done", response: { ...response, status: "completed", usage: options.usage ?? USAGE } });
  });
  send({ type: "session.created", session: { type: "realtime", object: "realtime.session", id: "sess_1" } });
}
