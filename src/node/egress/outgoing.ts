/** A request on its way to a server, over HTTP/1.1 or HTTP/2. */
import type { Agent } from "node:http";
import type { Readable, Writable } from "node:stream";
import { request } from "../../lib/network/node-http.ts";
import { withOneCookie } from "./headers.ts";

export interface OutgoingHead {
  method: string;
  path: string;
  authority: string;
  /** Names and values in turn, without the host. */
  headers: readonly string[];
  hasBody: boolean;
  /** The client takes headers after a body, which gRPC needs. */
  takesTrailers: boolean;
}

export interface Outgoing {
  /** Takes the body. */
  body: Writable;
  cancel(): void;
}

export interface Answer {
  status: number;
  /** Empty over HTTP/2. */
  message: string;
  rawHeaders: string[];
  body: Readable;
  /** The head is the end: a server of gRPC tells an error so, and its client takes it from such a head only. */
  isWhole: boolean;
  /** Headers after the body, once the body has ended. */
  trailers(): string[];
}

export interface OutgoingEvents {
  onAnswer(answer: Answer): void;
  /** No answer, or the answer broke off. `resetCode`: the server ended this request alone, over HTTP/2. */
  onError(error: Error, resetCode?: number): void;
  /** The whole request has left. */
  onSent(): void;
  /** The server has answered to the end and takes no more of the request. */
  onEnd(): void;
  /** Headers after the body of the request, once the body has ended. */
  trailers(): string[];
}

/** Trailers are dropped: nobody who speaks HTTP/1.1 relies on them. */
export function sendHttp1(agent: Agent, head: OutgoingHead, events: OutgoingEvents): Outgoing {
  const { method, path, authority, headers } = head;
  const outgoing = request({ agent, method, path, headers: ["host", authority, ...withOneCookie(headers)] });
  outgoing.once("finish", events.onSent);
  outgoing.once("error", events.onError);
  outgoing.once("response", (answered) => {
    const { statusCode: status = 502, statusMessage: message = "", rawHeaders } = answered;
    answered.once("error", events.onError);
    events.onAnswer({ status, message, rawHeaders, body: answered, isWhole: false, trailers: () => [] });
  });
  return { body: outgoing, cancel: () => void outgoing.destroy() };
}
