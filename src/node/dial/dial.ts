/** The one way to a workload from outside: a stream to its endpoint, whatever the endpoint is made of. */
import type { Duplex } from "node:stream";
import type { CallOptions, DialTarget, Endpoint } from "./endpoint.ts";
import { dialUnix } from "./unix.ts";

type Dial = (endpoint: Endpoint, target: DialTarget, options?: CallOptions) => Promise<Duplex>;

const DIALS: Record<Endpoint["kind"], Dial> = { unix: dialUnix };

/** A raw byte stream to the workload. Throws `bad_gateway` when nothing listens there. */
export const dial: Dial = (endpoint, target, options) => DIALS[endpoint.kind](endpoint, target, options);
