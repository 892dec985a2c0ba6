/** Where the answer to a request goes: HTTP/1.1 or HTTP/2, which differ in their heads. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Readable, Writable } from "node:stream";
import { STATUS_CODES } from "../../lib/network/node-http.ts";
import type { EgressRefusal } from "./refusal.ts";

/** A request of either version. */
export type Incoming = Readable & Pick<IncomingMessage, "method" | "url" | "headers" | "rawHeaders">;

export interface Sink {
  body: Writable;
  isBegun(): boolean;
  /** `rawHeaders`: names and values in turn. */
  begin(status: number, message: string, rawHeaders: string[]): void;
}

export const sinkOf = (response: ServerResponse): Sink => ({
  body: response,
  isBegun: () => response.headersSent,
  begin: (status, message, rawHeaders) => void response.writeHead(status, message, rawHeaders),
});

/** HTTP/2 has no reason phrase and no headers of a connection. */
export const sinkOfHttp2 = (response: Http2ServerResponse): Sink => ({
  body: response,
  isBegun: () => response.headersSent,
  begin(status, _, rawHeaders) {
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = (rawHeaders[index] ?? "").toLowerCase();
      if (name !== "transfer-encoding" && name !== "connection")
        response.appendHeader(name, rawHeaders[index + 1] ?? "");
    }
    response.writeHead(status);
  },
});

export function refuse({ body, begin }: Sink, { status, code, message }: EgressRefusal): void {
  begin(status, STATUS_CODES[status] ?? "", ["proxy-error", code, "content-type", "text/plain", "connection", "close"]);
  body.end(`${message}\n`);
}
