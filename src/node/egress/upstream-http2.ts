/** Requests to a server that speaks HTTP/2, all of one client's connection on one connection. */
import type { ClientHttp2Session, ClientSessionOptions } from "node:http2";
import type { TLSSocket } from "node:tls";
import { asHeaders, withoutHeaders } from "./headers.ts";
import type { Outgoing, OutgoingEvents, OutgoingHead } from "./outgoing.ts";

/** Loaded when the first server speaks HTTP/2: it takes some megabytes. */
const http2 = (): typeof import("node:http2") => process.getBuiltinModule("node:http2");

/** As in a tunnel in which nothing moves. */
const IDLE_MAX_MS = 15 * 60_000;
const KB = 1024;
/** A download over 100 ms of distance has this many bytes on their way at 10 MB/s. */
const WIDE = { stream: 1024 * KB, connection: 2048 * KB } as const;
/** What HTTP/2 begins with. */
const NARROW = { stream: 64 * KB - 1 } as const;
/** Connections of one workload with wide windows: the server may fill a window of which the client reads nothing. */
const WIDE_MAX = 16;

/** Node's types know the last member for servers only. */
const LIMITS: ClientSessionOptions & { strictSingleValueFields: boolean } = {
  ...{ maxHeaderListPairs: 512, maxSessionInvalidFrames: 100 },
  // A client's request goes on as it is.
  strictSingleValueFields: false,
};
const HEADER_LIST_BYTES_MAX = 64 * KB;

/** Headers that HTTP/2 has no use for. */
const HTTP1_ONLY = /^(?:transfer-encoding|host)$/i;

/** Connections with wide windows, by workload. */
const wide = new Map<string, number>();

/** A session on a connection whose TLS agreed on HTTP/2. */
export function openSession(stream: TLSSocket, uid: string): { session: ClientHttp2Session; ready: Promise<void> } {
  // A server that ends its side has left: HTTP/2 has no half of a connection.
  stream.allowHalfOpen = false;
  const isWide = takeWide(uid);
  const session = http2().connect("https://upstream.invalid", {
    ...LIMITS,
    createConnection: () => stream,
    settings: {
      enablePush: false,
      initialWindowSize: isWide ? WIDE.stream : NARROW.stream,
      maxHeaderListSize: HEADER_LIST_BYTES_MAX,
    },
  });
  session.setTimeout(IDLE_MAX_MS, () => session.destroy());
  session.on("error", () => session.destroy());
  session.once("close", () => {
    if (isWide) giveWide(uid);
    stream.destroy();
  });
  const ready = new Promise<void>((resolve, reject) => {
    session.once("close", () => reject(new Error("the connection broke")));
    session.once("connect", () => {
      if (isWide) session.setLocalWindowSize(WIDE.connection);
      resolve();
    });
  });
  return { session, ready };
}

function takeWide(uid: string): boolean {
  const taken = wide.get(uid) ?? 0;
  if (taken >= WIDE_MAX) return false;
  wide.set(uid, taken + 1);
  return true;
}

function giveWide(uid: string): void {
  const left = (wide.get(uid) ?? 1) - 1;
  if (left > 0) wide.set(uid, left);
  else wide.delete(uid);
}

/** Throws where the session takes no more requests. */
export function sendHttp2(session: ClientHttp2Session, head: OutgoingHead, events: OutgoingEvents): Outgoing {
  const { NGHTTP2_CANCEL, NGHTTP2_FLAG_END_STREAM, NGHTTP2_REFUSED_STREAM } = http2().constants;
  const { method, path, authority, headers, hasBody, takesTrailers } = head;
  const raw = [":method", method, ":scheme", "https", ":authority", authority, ":path", path];
  for (const [index, text] of withoutHeaders(headers, HTTP1_ONLY).entries())
    raw.push(index % 2 === 0 ? text.toLowerCase() : text);
  if (takesTrailers) raw.push("te", "trailers");
  const stream = session.request(raw, { endStream: !hasBody, waitForTrailers: hasBody });
  let [rawTrailers, isOver]: [string[], boolean] = [[], false];
  const fail = (error: Error): void => {
    if (isOver) return;
    isOver = true;
    const { rstCode = 0 } = stream;
    // A server that leaves refuses the requests that it has not begun; other requests end with the connection.
    const isOwn = rstCode === NGHTTP2_REFUSED_STREAM || !session.destroyed;
    events.onError(error, isOwn && rstCode !== 0 ? rstCode : undefined);
  };
  stream.once("wantTrailers", () => stream.sendTrailers(asHeaders(events.trailers())));
  stream.once("finish", events.onSent);
  stream.on("error", fail);
  stream.once("close", () => {
    if (isOver) events.onEnd();
    else fail(new Error("the server ended the request early"));
  });
  // A connection that is cut ends its streams as if they were whole, but for this code.
  stream.once("end", () => {
    if (stream.rstCode) fail(new Error("the answer broke off"));
    isOver = true;
  });
  stream.once("trailers", (_, __, given: string[] = []) => {
    rawTrailers = given;
  });
  stream.once("response", ({ ":status": status = 502 }, flags, rawHeaders: string[] = []) => {
    const isWhole = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
    events.onAnswer({ status, message: "", rawHeaders, body: stream, isWhole, trailers: () => rawTrailers });
  });
  return {
    body: stream,
    cancel: () => {
      isOver = true;
      // Node ends a begun request as if it were whole before it sends a code, unless the stream is destroyed.
      if (stream.writableEnded) stream.close(NGHTTP2_CANCEL);
      else stream.destroy(new Error("the request broke off"));
    },
  };
}
