/**
 * Delivers a stored request on the path of every other request: choose a revision, take an instance (starting one if
 * needed), forward, meter. No client waits; the workload's answer is stored up to a limit.
 */

import { asGatewayError, GatewayError } from "../contract/gateway-errors.ts";
import type { DownstreamEvents } from "../http/downstream.ts";
import { type HeaderRules, requestHead } from "../http/header-rules.ts";
import { HeldRequest } from "../http/held-request.ts";
import { requireOpen } from "./admit.ts";
import { type Call, finished, type ServeContext } from "./call.ts";
import type { Replay, Replayed, StoredRequest } from "./deps.ts";
import type { ExchangeLimits } from "./forward.ts";
import { ClientGone } from "./hold.ts";
import { choose, instanceFor, refuse, send } from "./serve.ts";

/** Bytes of an answer that are stored; the rest is only counted. */
const ANSWER_BYTES_MAX = 1024 * 1024;

/** Rejects with the signal's reason when aborted. */
export async function replay(context: ServeContext, asked: Replay): Promise<Replayed> {
  const { deps } = context;
  const { request, signal } = asked;
  const { requestId } = request;
  signal.throwIfAborted();
  const down = new ReplayDownstream(request, signal);
  const startedMs = performance.now();
  let call: Call | null = null;
  context.running += 1;
  try {
    if (context.stopping) throw new GatewayError("SHUTTING_DOWN");
    const workload = await deps.resolve({ by: "uid", workspace: asked.workspace, uid: asked.uid });
    if (workload === null) throw new GatewayError("WORKLOAD_NOT_FOUND");
    if (workload.elsewhere !== null) {
      if (!deps.peers || asked.handedOn)
        throw new GatewayError("NODE_UNAVAILABLE", "The workload is moving to another node.");
      const answered = await deps.peers.replay(workload.elsewhere, asked);
      finished(context);
      return answered;
    }
    requireOpen(workload);
    const admitted = {
      workload,
      principal: null,
      path: "",
      dropAuthorization: false,
      previewCookie: null,
      token: null,
    };
    const { method } = request;
    const nowhere = {
      prefix: "",
      pagePrefix: "",
      revision: null,
      heldMs: null,
      right: null,
      origin: "client" as const,
      leave: () => {},
    };
    call = { startedAtMs: deps.clock.now(), startedMs, requestId, admitted, method, ...nowhere };
    choose(context, down, call);
    const lease = await instanceFor(context, down, call);
    const limits = limitsOf(asked.totalMs);
    send(context, down, call, lease, { head: request.head, limits, cookie: null, requestId }, ({ error }) =>
      down.settle(error),
    );
  } catch (error) {
    refuse(context, down, call, error, { fixed: null, requestId });
    down.settle(error instanceof ClientGone ? null : asGatewayError(error));
  }
  return down.answer;
}

export interface PlatformRequest {
  path: string;
  headers: Record<string, string>;
  body: string;
  requestId: string;
}

/** A POST from the platform in the form of a stored client request. */
export function compose(rules: HeaderRules, { path, headers, body, requestId }: PlatformRequest): StoredRequest {
  const bytes = Buffer.from(body);
  const head = requestHead(rules, {
    method: "POST",
    path,
    rawHeaders: Object.entries(headers).flat(),
    host: undefined,
    framing: "length",
    contentLength: bytes.length,
    dropAuthorization: false,
    remoteAddress: "127.0.0.1",
    fromNetwork: true,
    secure: false,
    prefix: "",
    requestId,
    identity: "",
    fixed: null,
    upgrade: null,
  });
  return { method: "POST", head, hasBody: true, body: bytes.toString("base64"), requestId };
}

/** No client waits, so there is no idle timeout. */
const limitsOf = (totalMs: number): ExchangeLimits => ({
  idleMs: null,
  totalMs,
  tunnelIdleMs: null,
  tunnelTotalMs: null,
  bodyMax: null,
  bodyIdleMs: null,
});

class ReplayDownstream extends HeldRequest {
  readonly answer: Promise<Replayed>;
  readonly #signal: AbortSignal;
  readonly #settled = Promise.withResolvers<Replayed>();
  #status = 0;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #length = 0;

  constructor({ method, hasBody, body }: StoredRequest, signal: AbortSignal) {
    super({ method, body: hasBody ? Buffer.from(body, "base64") : null });
    this.#signal = signal;
    this.answer = this.#settled.promise;
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  override attach(events: DownstreamEvents): void {
    super.attach(events);
    if (this.#signal.aborted) process.nextTick(this.#onAbort);
  }

  head(status: number): void {
    this.#status = status;
  }

  write(chunk: Buffer): boolean {
    this.#length += chunk.length;
    const part = chunk.subarray(0, ANSWER_BYTES_MAX - this.#keptBytes);
    if (part.length > 0) this.#kept.push(Buffer.from(part));
    this.#keptBytes += part.length;
    return true;
  }

  end(): void {}
  destroy(): void {}

  /** The exchange is over. */
  settle(error: GatewayError | null): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    if (this.#signal.aborted) this.#settled.reject(this.#signal.reason);
    else
      this.#settled.resolve({
        status: error?.status ?? this.#status,
        body: Buffer.concat(this.#kept),
        length: this.#length,
        error,
      });
  }

  #onAbort = (): void => {
    this.events?.onClientGone();
  };
}
