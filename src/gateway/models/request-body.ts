import type { IncomingMessage } from "node:http";
import { GatewayError } from "../../contract/gateway-errors.ts";

/**
 * The whole body of a request. It is held in memory because the model's name in it is replaced and because a failed
 * attempt is sent again; the limit is what the largest providers accept.
 */
export function readBody(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
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
    req.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      // The rest is read and dropped: an answer is only seen by a caller who has finished sending.
      else reject(tooLarge(maxBytes));
    });
    req.on("end", () => resolve(chunks.length === 1 ? (chunks[0] ?? EMPTY) : Buffer.concat(chunks)));
    req.on("error", (cause) => reject(new GatewayError("BAD_REQUEST", "The body ended early.", { cause })));
    req.on("close", () => {
      if (!req.complete) reject(new GatewayError("BAD_REQUEST", "The body ended early."));
    });
  });
}

const EMPTY = Buffer.alloc(0);

const tooLarge = (maxBytes: number): GatewayError =>
  new GatewayError("REQUEST_ENTITY_TOO_LARGE", `The body is larger than ${maxBytes} bytes.`);
