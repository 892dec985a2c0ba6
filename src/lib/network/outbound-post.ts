/**
 * One POST to an address that a tenant chose: to public addresses only unless the operator allows private ones, never
 * through a redirect, bounded in time. What comes back is read to its end and thrown away, all but the status.
 */

import { request as httpsRequest } from "node:https";
import { SECOND_MS } from "../time/clock.ts";
import { addressGuard } from "./guarded-lookup.ts";
import { request as httpRequest } from "./node-http.ts";

export interface OutboundPost {
  url: string;
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
}

/** Returns the status of the answer; rejects when there was none. */
export type PostOutbound = (post: OutboundPost) => Promise<number>;

/** Receivers that take longer to say that they have got it are asked again. */
const ANSWER_MAX_MS = 30 * SECOND_MS;
/** Nobody reads the answer; one that does not end is cut off. */
const ANSWER_BYTES_MAX = 64 * 1024;

export class AddressRefused extends Error {
  constructor(host: string) {
    super(`The address of '${host}' is private or reserved; the operator of this platform does not allow it.`);
  }
}

export const createOutboundPost = (options: { privateAddresses: boolean }): PostOutbound => {
  const guard = addressGuard({ ...options, refused: (host) => new AddressRefused(host) });
  return async ({ url: text, headers, body, signal }) => {
    const url = new URL(text);
    guard.check(url.hostname);
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const sent = (url.protocol === "https:" ? httpsRequest : httpRequest)(
      url,
      {
        method: "POST",
        headers: { ...headers, "content-length": String(Buffer.byteLength(body)) },
        lookup: guard.lookup,
        agent: false,
        signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MAX_MS)]),
      },
      (answer) => {
        let bytes = 0;
        const done = (): void => resolve(answer.statusCode ?? 0);
        answer.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes <= ANSWER_BYTES_MAX) return;
          done();
          answer.destroy();
        });
        answer.on("end", done);
        // Its status was said; what broke afterwards is of no interest.
        answer.on("error", done);
      },
    );
    sent.on("error", reject);
    sent.end(body);
    return promise;
  };
};
