/**
 * Carries one request to a workload and its response back, byte for byte, holding neither: each side is read only as
 * fast as the other takes. A departing client ends the exchange with the workload, a failing workload ends it with the
 * client: before the first byte of a response by an error of ours, afterwards by cutting the connection, because a cut
 * response must not look complete.
 *
 * Modes: connecting -> open -> done; an upgrade leaves through a Tunnel.
 */
import type { Duplex } from "node:stream";
import { PlatformError } from "../contract/errors.ts";
import { asGatewayError, GatewayError, type GatewayErrorCode } from "../contract/gateway-errors.ts";
import type { Downstream, DownstreamEvents } from "../http/downstream.ts";
import {
  endToEnd,
  type HeaderRules,
  type ResponseExtras,
  responseHeaders,
  safeTrailers,
} from "../http/header-rules.ts";
import { type ResponseHead, ResponseSyntaxError } from "../http/http1/response-parser.ts";
import type { ExchangeSink, UpstreamConnection } from "../http/http1/upstream-connection.ts";
import { TooManyConnections, type UpstreamPool } from "../http/http1/upstream-pool.ts";
import type { OpenRight, Revocable } from "../http/open-rights.ts";
import { ownChoice, PROTOCOL_FIELD } from "../http/own-protocols.ts";
import { Tunnel, type TunnelEnd } from "../http/tunnel.ts";
import type { Sweepable, Sweeper } from "../lib/sweeper.ts";

export interface ForwardContext {
  pool: UpstreamPool;
  sweeper: Sweeper;
  rules: HeaderRules;
}

export interface ExchangeLimits {
  /** Longest time without a byte in either direction; null for no limit. */
  idleMs: number | null;
  totalMs: number | null;
  /** The same two limits for an upgraded connection. */
  tunnelIdleMs: number | null;
  tunnelTotalMs: number | null;
  /** Bytes of the request body; null for no limit. */
  bodyMax: number | null;
  /** Longest time without a byte of a body of known length, while the workload takes more; null for no limit. */
  bodyIdleMs: number | null;
}

export interface ForwardJob {
  method: string;
  /** The complete request head as the workload gets it. */
  head: string;
  /** Key of the instance in the connection pool. */
  key: string;
  dial(): Promise<Duplex>;
  /** Time limit of `dial`. */
  dialMs?: number;
  /**
   * The answering daemon may be replaced at any moment: a request it took but did not answer is sent to the next one.
   */
  exchangeable: boolean;
  limits: ExchangeLimits;
  /**
   * Headers that every response of this address carries, and the rules for the workload's own headers. Null when the
   * request is handed to the workload's node, which has applied the rules.
   */
  extras: ResponseExtras | null;
  /** For a request that must not be sent twice: how long a connection may have been idle. */
  reuseMs?: number;
  /** The right that the exchange ends with; null where another server watches it, or the platform itself asks. */
  right: OpenRight | null;
  /** Final change of the response headers; null for none. */
  edit: ((headers: string[]) => string[]) | null;
  /** Writes a platform error to a client that has received nothing yet. */
  refuse(error: GatewayError): void;
  done(outcome: ForwardOutcome): void;
}

export interface ForwardOutcome {
  /** 0 when the client disconnected before there was a status. */
  status: number;
  bytesIn: number;
  bytesOut: number;
  /** Why the platform ended the exchange; null when the workload answered completely or the client left. */
  error: GatewayError | null;
  clientGone: boolean;
}

/** Methods that are safe to send twice. PUT and DELETE are too, but their bodies are gone after the first time. */
const REPEATABLE = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/**
 * A pooled connection may be closing at the far end while the gateway writes. A request that cannot be sent twice
 * therefore only uses a connection that was in use within this time.
 */
const UNREPEATABLE_IDLE_MAX_MS = 1000;

/**
 * A request may be sent again twice: once when a reused connection was already closing, once when the workload's daemon
 * is being replaced.
 */
const REPEATS_MAX = 2;

/** Time limit of dialling, which is local: an instance that does not accept by then does not listen. */
const DIAL_MS = 10_000;

export function forward(context: ForwardContext, down: Downstream, job: ForwardJob): void {
  new WorkloadExchange(context, down, job).start();
}

export class WorkloadExchange implements ExchangeSink, DownstreamEvents, Sweepable, Revocable {
  readonly #context: ForwardContext;
  readonly #down: Downstream;
  readonly #job: ForwardJob;
  readonly #startedMs: number;
  #lastByteMs: number;
  #diallingSinceMs = 0;
  #connection: UpstreamConnection | null = null;
  #chunked = false;
  /** Since when the next byte of the body is awaited; null while none is. */
  #bodySinceMs: number | null = null;
  #isBodyComplete = false;
  #repeats = 0;
  #status = 0;
  #responding = false;
  #bytesIn = 0;
  #bytesOut = 0;
  #upgradeHead: ResponseHead | null = null;
  #over = false;

  constructor(context: ForwardContext, down: Downstream, job: ForwardJob) {
    this.#context = context;
    this.#down = down;
    this.#job = job;
    this.#startedMs = context.sweeper.now;
    this.#lastByteMs = this.#startedMs;
  }

  start(): void {
    const { pool, sweeper } = this.#context;
    this.#down.attach(this);
    const repeatable = REPEATABLE.has(this.#job.method);
    const idleMaxMs = repeatable ? Number.POSITIVE_INFINITY : (this.#job.reuseMs ?? UNREPEATABLE_IDLE_MAX_MS);
    const kept = this.#down.upgrade === null ? pool.take(this.#job.key, idleMaxMs) : null;
    sweeper.add(this);
    if (kept === null) this.#dial();
    else this.#send(kept);
  }

  sweep(nowMs: number): void {
    const { idleMs, totalMs, bodyIdleMs } = this.#job.limits;
    if (this.#connection === null && nowMs - this.#diallingSinceMs > (this.#job.dialMs ?? DIAL_MS)) {
      this.#fail(new GatewayError("WORKLOAD_NOT_LISTENING", "The workload did not accept the connection in time."));
    } else if (totalMs !== null && nowMs - this.#startedMs > totalMs) {
      this.#fail(new GatewayError("DURATION_EXCEEDED", `The request took longer than ${seconds(totalMs)}.`));
    } else if (bodyIdleMs !== null && this.#bodyWaitMs(nowMs) > bodyIdleMs) {
      this.#fail(new GatewayError("REQUEST_TIMEOUT", `No byte of the body arrived for ${seconds(bodyIdleMs)}.`));
    } else if (idleMs !== null && nowMs - this.#lastByteMs > idleMs) {
      this.#fail(new GatewayError("IDLE_TIMEOUT", `No byte was exchanged with the workload for ${seconds(idleMs)}.`));
    }
  }

  close(): void {
    this.#fail(new GatewayError("SHUTTING_DOWN", undefined, { headers: { "retry-after": "1" } }));
  }

  get right(): OpenRight | null {
    return this.#job.right;
  }

  revoke(): void {
    this.#fail(new GatewayError("AUTHENTICATION_FAILED", "The right to make this request has ended."));
  }

  #dial(): void {
    this.#diallingSinceMs = this.#context.sweeper.now;
    const { key, dial } = this.#job;
    this.#context.pool.open(key, dial).then(
      (connection) => {
        if (this.#over) connection.destroy();
        else this.#send(connection);
      },
      (cause: unknown) => this.#fail(dialError(cause)),
    );
  }

  #send(connection: UpstreamConnection): void {
    const { stream } = connection;
    const down = this.#down;
    this.#connection = connection;
    connection.begin(this, { method: this.#job.method, upgrade: down.upgrade !== null });
    if (down.bodyFraming === "none") {
      connection.requestSent();
      stream.write(this.#job.head, "latin1");
      return;
    }
    this.#chunked = down.bodyFraming === "chunked";
    if (!down.expectsContinue) this.#awaitBody();
    // The start of the body has usually arrived with the head, so both can leave in one packet.
    stream.cork();
    stream.write(this.#job.head, "latin1");
    down.readBody();
    process.nextTick(() => stream.uncork());
  }

  // Events of the client

  onRequestBody(chunk: Buffer): void {
    const connection = this.#connection;
    const { bodyMax } = this.#job.limits;
    if (connection === null || this.#over) return;
    this.#lastByteMs = this.#context.sweeper.now;
    this.#bytesIn += chunk.length;
    if (bodyMax !== null && this.#bytesIn > bodyMax) {
      this.#fail(new GatewayError("REQUEST_ENTITY_TOO_LARGE", `The body is larger than ${bodyMax} bytes.`));
      return;
    }
    const { stream } = connection;
    let takesMore: boolean;
    if (this.#chunked) {
      stream.cork();
      stream.write(`${chunk.length.toString(16)}\r\n`, "latin1");
      stream.write(chunk);
      takesMore = stream.write("\r\n", "latin1");
      stream.uncork();
    } else takesMore = stream.write(chunk);
    this.#awaitBody();
    if (takesMore) return;
    this.#bodySinceMs = null;
    this.#down.pauseBody();
  }

  onRequestEnd(trailers: string[]): void {
    const connection = this.#connection;
    if (connection === null || this.#over) return;
    this.#bodySinceMs = null;
    this.#isBodyComplete = true;
    if (this.#chunked) {
      let end = "0\r\n";
      const safe = safeTrailers(this.#context.rules, trailers);
      for (let i = 0; i < safe.length; i += 2) end += `${safe[i]}: ${safe[i + 1]}\r\n`;
      connection.stream.write(`${end}\r\n`, "latin1");
    }
    connection.requestSent();
  }

  onClientDrain(): void {
    this.#lastByteMs = this.#context.sweeper.now;
    this.#connection?.stream.resume();
  }

  onClientGone(): void {
    this.#connection?.destroy();
    this.#finish(null, true);
  }

  // Events of the workload

  onInformational(status: number, headers: string[]): void {
    this.#lastByteMs = this.#context.sweeper.now;
    if (status === 100) this.#down.sendContinue();
    else this.#down.sendInformational(status, headers);
  }

  onHead(head: ResponseHead): void {
    this.#lastByteMs = this.#context.sweeper.now;
    this.#status = head.status;
    if (head.framing === "upgrade") {
      this.#upgradeHead = head;
      return;
    }
    this.#responding = true;
    const { edit } = this.#job;
    const headers = this.#headersOf(head);
    this.#down.head(head.status, head.reason, edit === null ? headers : edit(headers));
  }

  onBody(chunk: Buffer): void {
    this.#lastByteMs = this.#context.sweeper.now;
    this.#bytesOut += chunk.length;
    if (!this.#down.write(chunk)) this.#connection?.stream.pause();
  }

  onReadEnd(): void {
    if (this.#responding && !this.#down.flush()) this.#connection?.stream.pause();
  }

  onEnd(trailers: string[]): void {
    this.#connection = null;
    this.#down.end(trailers.length === 0 ? trailers : safeTrailers(this.#context.rules, trailers));
    this.#finish(null, false);
  }

  onWritable(): void {
    this.#lastByteMs = this.#context.sweeper.now;
    if (this.#down.bodyFraming !== "none" && !this.#isBodyComplete) this.#awaitBody();
    this.#down.resumeBody();
  }

  /** An answer may begin before the body is complete; the client may then leave out the rest. */
  #bodyWaitMs(nowMs: number): number {
    return this.#bodySinceMs === null || this.#responding ? 0 : nowMs - this.#bodySinceMs;
  }

  /** Clients may send chunks as they come about, with long pauses; a body of known length is there to be sent. */
  #awaitBody(): void {
    if (!this.#chunked) this.#bodySinceMs = this.#context.sweeper.now;
  }

  onBroken(cause: Error, untouched: boolean): void {
    const connection = this.#connection;
    this.#connection = null;
    const repeatable = REPEATABLE.has(this.#job.method) && this.#down.bodyFraming === "none";
    const again = this.#job.exchangeable ? this.#repeats < REPEATS_MAX : connection?.reused && this.#repeats === 0;
    if (again && untouched && repeatable) {
      this.#repeats += 1;
      this.#dial();
      return;
    }
    const code = this.#job.extras === null ? "NODE_CONNECTION_CLOSED" : brokenCode(cause);
    this.#fail(new GatewayError(code, undefined, { cause, detail: { reason: cause.message } }));
  }

  /** Browsers end a WebSocket whose answer chooses none of the subprotocols that they offered. */
  #withProtocol(headers: string[]): string[] {
    const own = ownChoice(this.#down.header(PROTOCOL_FIELD), this.#context.rules.words);
    if (own === null || headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === PROTOCOL_FIELD)) return headers;
    return [...headers, "Sec-WebSocket-Protocol", own];
  }

  onUpgrade(workload: Duplex, fromWorkload: Buffer): void {
    const head = this.#upgradeHead;
    if (head === null || this.#over) {
      workload.destroy();
      return;
    }
    const { sweeper } = this.#context;
    const { limits } = this.#job;
    const { socket: client, early: fromClient } = this.#down.switchProtocols({
      reason: head.reason,
      protocol: protocolOf(head),
      headers: this.#withProtocol(this.#headersOf(head)),
    });
    this.#over = true;
    sweeper.delete(this);
    const tunnel = new Tunnel({
      client,
      workload,
      idleMs: limits.tunnelIdleMs,
      totalMs: limits.tunnelTotalMs,
      sweeper,
      right: this.#job.right,
      done: tunnelDone(this.#job.done, this.#status),
    });
    tunnel.start({ fromClient, fromWorkload });
  }

  #headersOf(head: ResponseHead): string[] {
    const { extras } = this.#job;
    return extras === null ? endToEnd(head.headers) : responseHeaders(this.#context.rules, head, extras);
  }

  // End of the exchange

  #fail(error: GatewayError): void {
    if (this.#over) return;
    this.#connection?.destroy();
    this.#connection = null;
    if (this.#responding) this.#down.destroy();
    else {
      this.#status = error.status;
      this.#job.refuse(error);
    }
    this.#finish(error, false);
  }

  #finish(error: GatewayError | null, clientGone: boolean): void {
    if (this.#over) return;
    this.#over = true;
    this.#context.sweeper.delete(this);
    this.#job.done({ status: this.#status, bytesIn: this.#bytesIn, bytesOut: this.#bytesOut, error, clientGone });
  }
}

/** A tunnel may idle for hours. This function keeps the exchange, its headers and its job out of the tunnel's memory. */
const tunnelDone =
  (done: ForwardJob["done"], status: number) =>
  ({ bytesIn, bytesOut }: TunnelEnd): void =>
    done({ status, bytesIn, bytesOut, error: null, clientGone: false });

const brokenCode = (cause: Error): GatewayErrorCode =>
  cause instanceof ResponseSyntaxError ? "WORKLOAD_BAD_RESPONSE" : "WORKLOAD_CONNECTION_CLOSED";

const seconds = (ms: number): string => `${ms / 1000} seconds`;

function dialError(cause: unknown): GatewayError {
  if (cause instanceof GatewayError || cause instanceof PlatformError) return asGatewayError(cause);
  if (cause instanceof TooManyConnections) {
    return new GatewayError("OVERLOADED", "The workload has as many connections as it may have.", {
      cause,
      headers: { "retry-after": "1" },
    });
  }
  return new GatewayError("WORKLOAD_NOT_LISTENING", undefined, { cause });
}

function protocolOf({ headers }: ResponseHead): string {
  let protocol = "";
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i]?.toLowerCase() === "upgrade") protocol = headers[i + 1] ?? "";
  return protocol;
}
