/** The one way to a workload from outside: a stream to its endpoint, whatever the endpoint is made of. */
import type { Duplex } from "node:stream";
import type { CallOptions, DialTarget, Endpoint } from "./endpoint.ts";
import { dialTcp } from "./tcp.ts";
import { dialUnix } from "./unix.ts";

/** A raw byte stream to the workload. Throws `bad_gateway` when nothing listens there. */
export function dial(endpoint: Endpoint, target: DialTarget, options?: CallOptions): Promise<Duplex> {
  return endpoint.kind === "unix" ? dialUnix(endpoint, target, options) : dialTcp(endpoint, target, options);
}
