/** A WebSocket that a client opened over HTTP/2, as the gateway forwards one: like an upgrade of HTTP/1.1. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Duplex } from "node:stream";
import { NodeDownstream, type Switching, toObject } from "../downstream.ts";

/** Belong to the handshake of HTTP/1.1, which the gateway has with the workload only. */
const HANDSHAKE = new Set(["sec-websocket-accept", "upgrade", "connection"]);

const KEY_BYTES = 16;

export class Http2WebSocket extends NodeDownstream {
  readonly #stream: Duplex;
  readonly #res: ServerResponse;

  constructor(req: IncomingMessage, res: ServerResponse) {
    super(req, res, { added: ["Sec-WebSocket-Key", randomBytes(KEY_BYTES).toString("base64")] });
    this.#stream = (req as unknown as Http2ServerRequest).stream;
    this.#res = res;
  }

  override get method(): string {
    return "GET";
  }

  override get upgrade(): string {
    return "websocket";
  }

  override get bodyFraming(): "none" {
    return "none";
  }

  override switchProtocols({ headers }: Switching): { socket: Duplex; early: Buffer } {
    const kept: string[] = [];
    for (let i = 0; i < headers.length; i += 2)
      if (!HANDSHAKE.has((headers[i] as string).toLowerCase()))
        kept.push(headers[i] as string, headers[i + 1] as string);
    this.markEnded();
    this.#res.writeHead(200, toObject(kept));
    this.#res.flushHeaders();
    return { socket: this.#stream, early: Buffer.alloc(0) };
  }
}
