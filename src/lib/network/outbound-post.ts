/** One POST to an address that a tenant chose, of whose answer only the status is of interest. */
import { SECOND_MS } from "../time/clock.ts";
import { createOutbound } from "./outbound-http.ts";

export interface OutboundPost {
  url: string;
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
}

/** Returns the status of the answer; rejects when there was none. */
export type PostOutbound = (post: OutboundPost) => Promise<number>;

/** A receiver that takes longer to answer is asked again. */
const ANSWER_MAX_MS = 30 * SECOND_MS;
const ANSWER_BYTES_MAX = 64 * 1024;

export const createOutboundPost = ({ privateAddresses }: { privateAddresses: boolean }): PostOutbound => {
  // A kept connection may close while the next POST is on its way, and nobody knows then whether it arrived.
  const outbound = createOutbound({ privateAddresses, keepAlive: false });
  return async ({ url, headers, body, signal }) => {
    const { status } = await outbound.request(url, {
      method: "POST",
      headers,
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MAX_MS)]),
      bytesMax: ANSWER_BYTES_MAX,
      longAnswer: "cut",
    });
    return status;
  };
};
