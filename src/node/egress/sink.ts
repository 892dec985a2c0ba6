/** Where the answer to a request goes: HTTP/1.1 or HTTP/2, which differ in their heads and ends. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Readable, Writable } from "node:stream";
import { STATUS_CODES } from "../../lib/network/node-http.ts";
import { asHeaders } from "./headers.ts";
import type { EgressRefusal } from "./refusal.ts";

/** A request of either version. */
export type Incoming = Readable & Pick<IncomingMessage, "method" | "url" | "headers" | "rawHeaders" | "rawTrailers">;

export interface SinkHead {
  status: number;
  message: string;
  /** Names and values in turn. */
  rawHeaders: readonly string[];
}

export interface Sink {
  body: Writable;
  isBegun(): boolean;
  /** Throws when the client's protocol has no such head. */
  begin(head: SinkHead): void;
  /** The head and no body. */
  answerWhole(head: SinkHead): void;
  /** Headers after the body, before the end of the body. */
  trail(rawTrailers: readonly string[]): void;
  /** Breaks the answer off, with a code of HTTP/2 where one is known. */
  reset(code?: number): void;
  /** Takes no more of the request, once the answer has left. */
  endRequest(): void;
}

export const sinkOf = (response: ServerResponse): Sink => {
  const begin: Sink["begin"] = ({ status, message, rawHeaders }) =>
    void response.writeHead(status, message, [...rawHeaders]);
  return {
    body: response,
    isBegun: () => response.headersSent,
    begin,
    answerWhole(head) {
      begin(head);
      response.end();
    },
    trail() {},
    reset: () => void response.destroy(),
    endRequest() {},
  };
};

/** Ends of a stream of HTTP/2. */
const [NO_ERROR, INTERNAL_ERROR] = [0, 2];

/** HTTP/2 has no reason phrase and no headers of a connection. */
export function sinkOfHttp2(response: Http2ServerResponse): Sink {
  const { stream } = response;
  const respond = ({ status, rawHeaders }: SinkHead, endStream: boolean): void => {
    const raw = [":status", String(status)];
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = (rawHeaders[index] ?? "").toLowerCase();
      if (name !== "transfer-encoding" && name !== "connection") raw.push(name, rawHeaders[index + 1] ?? "");
    }
    if (!stream.destroyed) stream.respond(raw, { endStream, waitForTrailers: !endStream });
  };
  return {
    body: response,
    isBegun: () => stream.headersSent,
    begin: (head) => respond(head, false),
    answerWhole(head) {
      respond(head, true);
      response.end();
    },
    trail: (rawTrailers) => response.addTrailers(asHeaders(rawTrailers)),
    reset(code = INTERNAL_ERROR) {
      // Node ends a begun answer as if it were whole before it sends a code, unless the stream is destroyed.
      if (stream.headersSent) stream.destroy(new Error("the answer broke off"));
      else stream.close(code);
    },
    endRequest: () => stream.close(NO_ERROR),
  };
}

export function refuse({ body, begin }: Sink, { status, code, message }: EgressRefusal): void {
  const rawHeaders = ["proxy-error", code, "content-type", "text/plain", "connection", "close"];
  begin({ status, message: STATUS_CODES[status] ?? "", rawHeaders });
  body.end(`${message}\n`);
}
