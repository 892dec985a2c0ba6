/** Answers a request to a sandbox's address on the platform's own authority. */

import type { Downstream } from "../http/downstream.ts";
import type { HeaderRules } from "../http/header-rules.ts";
import { respond } from "../http/platform-response.ts";
import type { OwnEndpoint } from "./deps.ts";
import { ClientGone } from "./hold.ts";
import { readBody } from "./request-body.ts";

/** Most are small JSON objects. */
const BODY_BYTES_MAX = 64 * 1024;

/** As the daemon inside says it, so that clients cannot tell the difference. */
const HEADERS = [
  ["Access-Control-Allow-Origin", "*"],
  ["Cache-Control", "no-cache, no-store, must-revalidate"],
  ["X-Content-Type-Options", "nosniff"],
].flat();

export interface OwnOutcome {
  status: number;
  bytesIn: number;
  bytesOut: number;
}

export async function answerOwn(
  rules: HeaderRules,
  down: Downstream,
  endpoint: OwnEndpoint,
  requestId: string,
  bytesMax = BODY_BYTES_MAX,
): Promise<OwnOutcome> {
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => {}); // a client that leaves while nobody waits for it is nobody's failure
  const left = new AbortController();
  const sent = await readBody(down, bytesMax, () => {
    left.abort();
    gone.reject(new ClientGone());
  });
  const { status, body, headers = {} } = await Promise.race([endpoint(sent, left.signal), gone.promise]);
  const text = body === null ? "" : JSON.stringify(body);
  const all = ["X-Request-Id", requestId, ...HEADERS, ...Object.entries(headers).flat()];
  respond(rules, down, status, body === null ? null : "application/json", text, all, null);
  return { status, bytesIn: sent.length, bytesOut: Buffer.byteLength(text) };
}
