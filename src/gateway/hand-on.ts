/**
 * Hands the whole request of a client to the node that has the workload. That node authenticates, admits, wakes and
 * meters as if the client had come to it; its answer goes back as it is. This server adds nothing but a description of
 * the client, and enforces no limits of its own.
 */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import { endToEnd } from "../http/header-rules.ts";
import { lowerName } from "../http/http1/header-name.ts";
import { clientValue, PEER_FIELD } from "../http/peer-field.ts";
import { respondError } from "../http/platform-response.ts";
import { finished, type ServeContext } from "./call.ts";
import { type ExchangeLimits, forward } from "./forward.ts";

/** Idle timeout of connections to peers, which close after 75 s themselves. */
export const PEER_IDLE_MAX_MS = 60_000;
/** The same for requests that must not be sent twice: a peer that stops closes its idle connections at once. */
const REUSE_MS = 30_000;

const NO_LIMITS: ExchangeLimits = {
  idleMs: null,
  totalMs: null,
  tunnelIdleMs: null,
  tunnelTotalMs: null,
  bodyMax: null,
  bodyIdleMs: null,
};

/** Fields that this server writes itself. */
const REWRITTEN: ReadonlySet<string> = new Set([PEER_FIELD, "x-request-id", "content-length"]);

/** The request counts as running until its end. */
export function handOn(context: ServeContext, down: Downstream, node: string, requestId: string): void {
  const { deps, handing, responding } = context;
  const { peers } = deps;
  if (down.handedOn || !peers) throw new GatewayError("NODE_UNAVAILABLE", "The workload is moving to another node.");
  context.counters.handedOn();
  forward(handing, down, {
    method: down.method,
    head: handedHead(down, requestId),
    // A connection that once had a request for Node's parser stays with it, so plain requests have their own.
    key: `${node} ${isPlain(down) ? "plain" : "any"}`,
    dial: () => peers.dial(node),
    reuseMs: REUSE_MS,
    exchangeable: false,
    limits: NO_LIMITS,
    extras: null,
    right: null,
    edit: null,
    refuse: (error) => respondError(responding, down, error, { fixed: null, requestId }),
    done: ({ status, error }) => {
      const fields = { requestId, node, method: down.method, status, error: error?.code };
      if (error === null) deps.log.debug(fields, "a request was handed on");
      else deps.log.warn({ ...fields, err: error.cause }, "a request could not be handed on");
      if (error !== null) context.counters.refused(error.code);
      finished(context);
    },
  });
}

const isPlain = (down: Downstream): boolean =>
  down.bodyFraming !== "chunked" && !down.expectsContinue && down.upgrade === null;

/** The client's head with the framing of this hop, and the client's own description of itself removed. */
function handedHead(down: Downstream, requestId: string): string {
  const { rawHeaders, remoteAddress, fromNetwork, workload, secure } = down;
  let head = `${down.method} ${down.url} HTTP/1.1\r\n`;
  const fields = endToEnd(rawHeaders);
  let hasHost = false;
  for (let i = 0; i < fields.length; i += 2) {
    const name = lowerName(fields[i] as string);
    hasHost ||= name === "host";
    if (!REWRITTEN.has(name)) head += `${fields[i]}: ${fields[i + 1]}\r\n`;
  }
  // HTTP/2 names the host in a field of its own.
  if (!hasHost) head += `Host: ${down.host ?? "localhost"}\r\n`;
  head += `X-Request-Id: ${requestId}\r\n`;
  head += `${PEER_FIELD}: ${clientValue({ address: fromNetwork ? remoteAddress : undefined, secure, workload })}\r\n`;
  if (down.bodyFraming === "length") head += `Content-Length: ${down.contentLength}\r\n`;
  else if (down.bodyFraming === "chunked") head += "Transfer-Encoding: chunked\r\n";
  if (down.upgrade !== null) return `${head}Upgrade: ${down.upgrade}\r\nConnection: Upgrade\r\n\r\n`;
  return TRAILERS.test(down.header("te") ?? "") ? `${head}TE: trailers\r\nConnection: TE\r\n\r\n` : `${head}\r\n`;
}

const TRAILERS = /(?:^|,)\s*trailers\s*(?:[,;]|$)/i;
