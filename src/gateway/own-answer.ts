/** Answers a request to a sandbox's address by the platform itself. */

import type { Downstream } from "../http/downstream.ts";
import type { HeaderRules } from "../http/header-rules.ts";
import { respond } from "../http/platform-response.ts";
import type { OwnEndpoint } from "./deps.ts";
import { ClientGone } from "./hold.ts";
import { readBody } from "./request-body.ts";

/** Default limit of the body; most are small JSON objects. */
const BODY_BYTES_MAX = 64 * 1024;

/** The headers of the daemon inside, so that clients see no difference. */
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
  gone.promise.catch(() => {}); // avoids an unhandled rejection when the client leaves while the body is read
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
