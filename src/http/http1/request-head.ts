/**
 * Reads the head of a plain request: the common kind, strictly written, that leaves nothing open to interpretation.
 * Anything else (chunked bodies, upgrades, Expect, HTTP/1.0, odd spacing, repeated framing fields, trailers) is not
 * refused but left to Node's own parser, which knows the whole of HTTP.
 */
import type { Client } from "../peer-field.ts";
import { lowerName, trimField } from "./header-name.ts";
import { isHost } from "./host-field.ts";

export interface PlainHead {
  method: string;
  target: string;
  /** Names and values in turn, as sent. */
  rawHeaders: string[];
  /** The names alone, in lower case. */
  names: string[];
  host: string;
  /** Null when there is no body. */
  contentLength: number | null;
  close: boolean;
  /** Whether the connection sent the same bytes before; the same object is returned for them. */
  isRepeated: boolean;
  /** The client of a request that another server hands on; null when the connection is the client's own. */
  client: Client | null;
}

const HEAD =
  /^(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) (\/[\x21\x22\x24-\x7e]*) HTTP\/1\.1((?:\r\n[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*)+)$/;
const LENGTH = /^[0-9]{1,15}$/;

/** Headers of a plain request; a request with more is left to Node's parser. */
const HEADERS_MAX = 100;

/** `text` is everything before the empty line. Returns null when the request is not plain. */
export function readPlainHead(text: string): PlainHead | null {
  const match = HEAD.exec(text);
  if (match === null) return null;
  const rawHeaders: string[] = [];
  const names: string[] = [];
  let host: string | null = null;
  let contentLength: number | null = null;
  let close = false;
  let at = text.indexOf("\r\n") + 2;
  while (at < text.length) {
    let end = text.indexOf("\r\n", at);
    if (end < 0) end = text.length;
    const colon = text.indexOf(":", at);
    const raw = text.slice(at, colon);
    const value = trimField(text, colon + 1, end);
    const name = lowerName(raw);
    switch (name) {
      case "host":
        if (host !== null || !isHost(value)) return null;
        host = value;
        break;
      case "content-length":
        if (contentLength !== null || !LENGTH.test(value)) return null;
        contentLength = Number(value);
        break;
      case "connection":
        if (value === "close") close = true;
        else if (value.toLowerCase() !== "keep-alive") return null;
        break;
      case "transfer-encoding":
      case "upgrade":
      case "expect":
      case "trailer":
      case "te":
      case "proxy-connection":
      case "http2-settings":
        return null;
    }
    rawHeaders.push(raw, value);
    names.push(name);
    at = end + 2;
  }
  if (host === null || names.length > HEADERS_MAX) return null;
  const [, method = "", target = ""] = match;
  return { method, target, rawHeaders, names, host, contentLength, close, isRepeated: false, client: null };
}
