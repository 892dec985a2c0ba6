import type { IncomingMessage } from "node:http";
import { GatewayError } from "../../contract/gateway-errors.ts";

/** Bytes of all bodies held at one time, so that many large requests cannot fill the memory together. */
export class HeldBytes {
  readonly #max: number;
  #now = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get now(): number {
    return this.#now;
  }

  /** False when there is no room left. */
  take(bytes: number): boolean {
    if (this.#now + bytes > this.#max) return false;
    this.#now += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#now -= bytes;
  }
}

/**
 * The whole body of a request. It is held in memory because the model's name in it is replaced and because a failed
 * attempt is sent again; the limit is what the largest providers accept. Its length stays taken from `held` until the
 * caller releases it; of a body that is refused nothing is.
 */
export function readBody(req: IncomingMessage, maxBytes: number, held: HeldBytes): Promise<Buffer> {
  const encoding = req.headers["content-encoding"];
  if (encoding && encoding !== "identity") {
    return Promise.reject(
      new GatewayError("BAD_REQUEST", `Send the body uncompressed, not as ${encoding.slice(0, 20)}.`),
    );
  }
  if (Number(req.headers["content-length"] ?? 0) > maxBytes) return Promise.reject(tooLarge(maxBytes));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let refused = false;
    const refuse = (error: GatewayError): void => {
      if (refused) return;
      refused = true;
      held.release(bytes);
      chunks.length = 0;
      reject(error);
    };
    req.on("data", (chunk: Buffer) => {
      // What follows a refusal is read and dropped: an answer is only seen by a caller who has finished sending.
      if (refused) return;
      if (bytes + chunk.length > maxBytes) return refuse(tooLarge(maxBytes));
      if (!held.take(chunk.length))
        return refuse(new GatewayError("OVERLOADED", undefined, { headers: { "retry-after": "1" } }));
      bytes += chunk.length;
      chunks.push(chunk);
    });
    req.on("end", () => {
      if (!refused) resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
    });
    req.on("error", (cause) => refuse(new GatewayError("BAD_REQUEST", "The body ended early.", { cause })));
    req.on("close", () => {
      if (!req.complete) refuse(new GatewayError("BAD_REQUEST", "The body ended early."));
    });
  });
}

const tooLarge = (maxBytes: number): GatewayError =>
  new GatewayError("REQUEST_ENTITY_TOO_LARGE", `The body is larger than ${maxBytes} bytes.`);
