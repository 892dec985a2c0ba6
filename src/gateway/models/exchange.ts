/**
 * One attempt on the wire: a request to a provider and its answer to the caller.
 *
 * Modes: waiting (nothing came yet) -> collecting (an answer that is judged first) or forwarding (an answer that is
 * the caller's) -> over. The caller's pace is the provider's pace: when the caller does not read, the socket is not
 * read either. When the caller goes away the provider's connection is cut at once.
 */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Dispatcher } from "undici";
import type { BodyPipe } from "./body-pipes.ts";
import type { UpstreamRequest } from "./upstream-request.ts";
import type { Upstream } from "./upstreams.ts";

export interface ExchangeOptions {
  upstream: Upstream;
  request: UpstreamRequest;
  res: ServerResponse;
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
  /** True for an answer that is kept and judged instead of passed on. */
  collects(status: number, headers: IncomingHttpHeaders): boolean;
  /** Says how the answer is passed on; its head is written when the first byte goes out. */
  open(status: number, headers: IncomingHttpHeaders): OpenedBody;
  /** The pipe's own words for a failure in the middle of the answer. */
  failed(pipe: BodyPipe, error: unknown): Buffer | string | null;
}

export interface OpenedBody {
  pipe: BodyPipe;
  /** A whole answer goes out in one piece; chunks go out as they come; of events the head goes out at once. */
  sent: "whole" | "chunks" | "events";
  /** The length is given when it is known. */
  writeHead(bytes: number | null): void;
}

export type ExchangeResult =
  | { kind: "delivered" }
  /** The answer began and broke off; `told` when the caller has part of it, and was told in its own dialect. */
  | { kind: "interrupted"; error: unknown; told: boolean }
  | { kind: "collected"; status: number; headers: IncomingHttpHeaders; body: Buffer; complete: boolean }
  /** Nothing came. */
  | { kind: "failed"; error: unknown }
  /** The caller went away; `sent` when the provider had the request by then. */
  | { kind: "aborted"; sent: boolean };

/** Errors of providers are short; what is longer is not worth keeping. */
const COLLECTED_MAX_BYTES = 64 * 1024;
/**
 * Up to here an answer is handed over as text, one character a byte: Node puts it behind the head and makes one write
 * of both, a tenth cheaper than a vectored write.
 */
const ONE_WRITE_MAX_BYTES = 16 * 1024;
/** A caller that reads nothing for this long is gone, whatever its socket says. */
const CALLER_STALL_MAX_MS = 300_000;

const DECODERS: Record<string, () => Transform> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

export class Exchange implements Dispatcher.DispatchHandler {
  readonly #options: ExchangeOptions;
  readonly #done = Promise.withResolvers<ExchangeResult>();
  #mode: "waiting" | "collecting" | "forwarding" | "over" = "waiting";
  #controller: Dispatcher.DispatchController | null = null;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #collected: Buffer[] = [];
  #collectedBytes = 0;
  #body: OpenedBody | null = null;
  #held: (Buffer | string)[] = [];
  #headWritten = false;
  #decoder: Transform | null = null;
  #stall: NodeJS.Timeout | null = null;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  run(): Promise<ExchangeResult> {
    const { upstream, request, firstByteTimeoutMs, idleTimeoutMs } = this.#options;
    if (this.#mode === "over") return this.#done.promise;
    try {
      upstream.dispatcher.dispatch(
        {
          origin: upstream.origin,
          path: request.path,
          method: request.method as Dispatcher.HttpMethod,
          headers: request.headers,
          body: request.body,
          headersTimeout: firstByteTimeoutMs,
          bodyTimeout: idleTimeoutMs,
        },
        this,
      );
    } catch (error) {
      this.#finish({ kind: "failed", error });
    }
    return this.#done.promise;
  }

  /** The caller went away. */
  abort(): void {
    if (this.#mode === "over") return;
    const sent = this.#controller !== null;
    this.#finish({ kind: "aborted", sent });
    this.#controller?.abort(new Error("the caller went away"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#mode === "over") controller.abort(new Error("the caller went away"));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.#mode !== "waiting" || status < 200) return;
    this.#status = status;
    this.#headers = headers;
    if (this.#options.collects(status, headers)) {
      this.#mode = "collecting";
      return;
    }
    this.#mode = "forwarding";
    this.#body = this.#options.open(status, headers);
    if (this.#body.sent === "events") {
      this.#writeHead(null);
      this.#options.res.flushHeaders();
    }
    const decoder = DECODERS[String(headers["content-encoding"] ?? "")]?.();
    if (decoder) this.#decode(decoder, controller);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#mode === "collecting") this.#collect(chunk);
    else if (this.#mode !== "forwarding") return;
    else if (!this.#decoder) this.#forward(chunk);
    else if (!this.#decoder.write(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#mode === "collecting") this.#finishCollecting(true);
    else if (this.#decoder) this.#decoder.end();
    else if (this.#mode === "forwarding") this.#end();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#mode === "waiting") this.#finish({ kind: "failed", error });
    else if (this.#mode === "collecting") this.#finishCollecting(false);
    else if (this.#mode === "forwarding") this.#break(error);
  }

  #collect(chunk: Buffer): void {
    this.#collectedBytes += chunk.length;
    this.#collected.push(chunk);
    if (this.#collectedBytes <= COLLECTED_MAX_BYTES) return;
    this.#finishCollecting(false);
    this.#controller?.abort(new Error("the error is longer than is kept"));
  }

  #finishCollecting(complete: boolean): void {
    const body = Buffer.concat(this.#collected);
    this.#finish({ kind: "collected", status: this.#status, headers: this.#headers, body, complete });
  }

  #forward(chunk: Buffer): void {
    const out = this.#body?.pipe.chunk(chunk) ?? null;
    if (out === null || out.length === 0) return;
    if (this.#body?.sent === "whole") {
      this.#held.push(out);
      return;
    }
    this.#writeHead(null);
    if (!this.#options.res.write(out)) this.#waitForCaller();
  }

  #waitForCaller(): void {
    if (this.#stall) return;
    this.#controller?.pause();
    this.#decoder?.pause();
    this.#stall = setTimeout(() => this.#options.res.destroy(), CALLER_STALL_MAX_MS);
    this.#options.res.once("drain", () => {
      this.#clearStall();
      this.#decoder?.resume();
      this.#controller?.resume();
    });
  }

  #end(): void {
    try {
      const out = this.#body?.pipe.end() ?? null;
      if (out !== null) this.#held.push(out);
      this.#close();
    } catch (error) {
      this.#break(error);
      return;
    }
    this.#body?.pipe.after?.();
    this.#finish({ kind: "delivered" });
  }

  #break(error: unknown): void {
    if (!this.#headWritten) {
      this.#finish({ kind: "interrupted", error, told: false });
      return;
    }
    const out = this.#body ? this.#options.failed(this.#body.pipe, error) : null;
    this.#finish({ kind: "interrupted", error, told: true });
    if (out === null) this.#options.res.destroy();
    else this.#options.res.end(out);
  }

  #close(): void {
    const { res } = this.#options;
    const held = this.#held.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
    const last = held.length > 1 ? Buffer.concat(held) : held[0];
    this.#writeHead(last?.length ?? 0);
    if (last && last.length <= ONE_WRITE_MAX_BYTES) res.end(last.toString("latin1"), "latin1");
    else res.end(last);
  }

  #writeHead(bytes: number | null): void {
    if (this.#headWritten) return;
    this.#body?.writeHead(bytes);
    this.#headWritten = true;
  }

  /** Identity was asked for; who compresses nevertheless is read through, so that the answer can be metered. */
  #decode(decoder: Transform, controller: Dispatcher.DispatchController): void {
    this.#decoder = decoder;
    decoder.on("data", (chunk: Buffer) => {
      if (this.#mode === "forwarding") this.#forward(chunk);
    });
    decoder.on("drain", () => {
      if (!this.#stall) controller.resume();
    });
    decoder.on("end", () => {
      if (this.#mode === "forwarding") this.#end();
    });
    decoder.on("error", (error) => {
      if (this.#mode !== "forwarding") return;
      this.#break(error);
      controller.abort(error);
    });
  }

  #finish(result: ExchangeResult): void {
    if (this.#mode === "over") return;
    this.#mode = "over";
    this.#clearStall();
    this.#done.resolve(result);
  }

  #clearStall(): void {
    if (this.#stall) clearTimeout(this.#stall);
    this.#stall = null;
  }
}
