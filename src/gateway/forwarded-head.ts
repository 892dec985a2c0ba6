import type { Downstream } from "../http/downstream.ts";
import { requestHead } from "../http/header-rules.ts";
import type { Call, ServeContext } from "./call.ts";
import { identityLines } from "./request-rules.ts";

export interface HeadExtras {
  requestId: string;
  rawHeaders: readonly string[];
  /** Length of a body that was read completely before; absent = the body is streamed. */
  bodyLength?: number;
}

/** The request's head as the workload gets it. */
export function headOf(
  { forwarding, identityWords }: ServeContext,
  down: Downstream,
  { admitted, prefix }: Call,
  { requestId, rawHeaders, bodyLength }: HeadExtras,
): string {
  const { workload } = admitted;
  return requestHead(forwarding.rules, {
    method: down.method,
    path: admitted.path,
    rawHeaders,
    host: down.host,
    framing: bodyLength === undefined || down.bodyFraming === "none" ? down.bodyFraming : "length",
    contentLength: bodyLength ?? down.contentLength,
    dropAuthorization: admitted.dropAuthorization,
    remoteAddress: down.remoteAddress,
    fromNetwork: down.fromNetwork,
    secure: down.secure,
    prefix,
    requestId,
    identity: workload.door === "api" ? identityLines(identityWords, admitted) : "",
    fixed: workload.preview?.requestHeaders ?? null,
    upgrade: down.upgrade,
  });
}
