/** A provider's server as far as bytes go: it keeps what it was sent and answers as it is told. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listen } from "./gateway-harness.ts";

export interface ReceivedRequest {
  method: string;
  /** Raw, as it came. */
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
  json: Record<string, unknown>;
  /** Resolves when the connection of this request is gone. */
  closed: Promise<void>;
}

export type Answer = (request: ReceivedRequest, res: ServerResponse, number: number) => Promise<void> | void;

export interface UpstreamServer extends AsyncDisposable {
  baseUrl: string;
  requests: ReceivedRequest[];
  /** Resolves with the request of that number, counted from one. */
  received(number: number): Promise<ReceivedRequest>;
}

export async function startUpstream(answer: Answer): Promise<UpstreamServer> {
  const requests: ReceivedRequest[] = [];
  const waiting: { number: number; resolve: (request: ReceivedRequest) => void }[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    const closed = new Promise<void>((resolve) => res.on("close", resolve));
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      const request = {
        method: req.method ?? "",
        url: req.url ?? "",
        headers: req.headers,
        body,
        json: parse(body),
        closed,
      };
      requests.push(request);
      for (const waiter of waiting) if (waiter.number === requests.length) waiter.resolve(request);
      void answer(request, res, requests.length);
    });
  });
  const port = await listen(server);
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    requests,
    received(number) {
      const known = requests[number - 1];
      return known ? Promise.resolve(known) : new Promise((resolve) => void waiting.push({ number, resolve }));
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function parse(body: string): Record<string, unknown> {
  try {
    return JSON.parse(body) as Record<string, unknown>;
  } catch {
    return {};
  }
}

export function sendJson(
  res: ServerResponse,
  value: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  res.writeHead(status, { "content-type": "application/json", ...headers });
  res.end(typeof value === "string" ? value : JSON.stringify(value));
}

/** Sends bytes in pieces, each in a turn of its own so that they arrive apart. */
export async function sendPieces(res: ServerResponse, pieces: (Buffer | string)[]): Promise<void> {
  for (const piece of pieces) {
    await new Promise<void>((resolve) => res.write(piece, () => resolve()));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export function startEvents(res: ServerResponse, status = 200): void {
  res.writeHead(status, { "content-type": "text/event-stream" });
  res.flushHeaders();
}

/** The text cut into pieces of a size, at byte boundaries. */
export function cut(text: string, size: number): Buffer[] {
  const bytes = Buffer.from(text);
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}
