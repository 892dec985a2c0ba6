/** Ways to write an answer. */
import type { ServerResponse } from "node:http";

export function sendJson(res: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  res.writeHead(status, { "Content-Type": "application/json; charset=utf-8", "Content-Length": body.byteLength });
  res.end(body);
}

/** Writes and waits for backpressure from the client. False once the client is gone. */
export async function writeChunk(res: ServerResponse, chunk: string | Uint8Array): Promise<boolean> {
  if (res.destroyed || res.closed) return false;
  if (res.write(chunk)) return true;
  return new Promise((resolve) => {
    const settle = (): void => {
      res.off("drain", settle);
      res.off("close", settle);
      resolve(!res.destroyed && !res.closed);
    };
    res.once("drain", settle);
    res.once("close", settle);
  });
}
