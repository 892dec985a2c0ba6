/** Asynchronous requests: stored first, then answered, then delivered to their workload later. */

import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import { respond } from "../http/platform-response.ts";
import type { Call, ServeContext } from "./call.ts";
import type { HttpTrigger } from "./deps.ts";
import type { ForwardOutcome } from "./forward.ts";
import { headOf } from "./forwarded-head.ts";
import { readBody } from "./request-body.ts";

/** Bytes of the body, which is stored in the database until delivery. Larger inputs belong in a drive or a volume. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;

const ACCEPTED = JSON.stringify({ success: true });

export async function acceptAsync(
  context: ServeContext,
  down: Downstream,
  call: Call,
  trigger: HttpTrigger | null,
  requestId: string,
): Promise<ForwardOutcome> {
  const { workload } = call.admitted;
  const body = await readBody(down, BODY_BYTES_MAX);
  const kept = await context.deps.keepRequest({
    workload,
    triggerId: trigger?.id ?? null,
    request: {
      method: down.method,
      head: headOf(context, down, call, { requestId, rawHeaders: down.rawHeaders, bodyLength: body.length }),
      hasBody: down.bodyFraming !== "none",
      body: body.toString("base64"),
      requestId,
    },
  });
  if (!kept)
    throw new GatewayError("RATE_LIMITED", "Too many asynchronous requests of this workspace wait to be delivered.", {
      headers: { "retry-after": "10" },
    });
  respond(context.forwarding.rules, down, 200, "application/json", ACCEPTED, ["X-Request-Id", requestId], null);
  return { status: 200, bytesIn: body.length, bytesOut: ACCEPTED.length, error: null, clientGone: false };
}
