/** The port of the S3 door. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Running } from "../lib/lifecycle.ts";

/**
 * A connection without a byte in either direction for this long ends. Long, because completing a large upload copies
 * its parts before the answer.
 */
export const IDLE_MS = 15 * 60_000;
/** Time that requests in flight get when the server stops. */
const DRAIN_MS = 10_000;
const SWEEP_MS = 50;

export type S3Handler = (req: IncomingMessage, res: ServerResponse, isWaiting?: boolean) => Promise<void>;

export interface S3Listener extends Running {
  port: number;
}

export async function openS3Listener(
  server: Server,
  handle: S3Handler,
  { host, port }: { host: string; port: number },
): Promise<S3Listener> {
  server.on("request", (req: IncomingMessage, res: ServerResponse) => void handle(req, res));
  // The signature is checked before the client sends the body.
  server.on("checkContinue", (req: IncomingMessage, res: ServerResponse) => void handle(req, res, true));
  server.setTimeout(IDLE_MS);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return {
    port: address !== null && typeof address === "object" ? address.port : port,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
      const end = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
      await closed;
      clearInterval(sweep);
      clearTimeout(end);
    },
  };
}
