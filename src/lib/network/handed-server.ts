/** An HTTP server without a port: other code accepts its connections and hands them over with `emit("connection")`. */
import type { Server, ServerOptions } from "node:http";
import { createServer } from "./node-http.ts";

/** Longest interval at which `headersTimeout` is checked. */
const CHECK_EVERY_MS = 5_000;

/** The server counts its connections until `close()`. */
export function createHandedServer(options: ServerOptions): Server {
  const server = createServer({
    ...options,
    connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, options.headersTimeout ?? CHECK_EVERY_MS),
  });
  // Node begins to keep its list of connections with this event. Without the list neither `headersTimeout` nor
  // `closeAllConnections` has an effect.
  server.emit("listening");
  return server;
}
