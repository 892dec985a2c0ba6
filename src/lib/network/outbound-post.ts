/**
 * One POST to an address that a tenant chose: public addresses only unless the operator allows private ones, no
 * redirects, with a time limit. The body of the answer is read and discarded; only the status counts.
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

/** Returns the status of the answer; rejects when there was no answer. */
export type PostOutbound = (post: OutboundPost) => Promise<number>;

/** Time for the receiver to answer; after that the delivery is retried. */
const ANSWER_MAX_MS = 30 * SECOND_MS;
/** A longer answer is cut off; its body is discarded anyway. */
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
        // The status has arrived; a later error of the body does not matter.
        answer.on("error", done);
      },
    );
    sent.on("error", reject);
    sent.end(body);
    return promise;
  };
};
