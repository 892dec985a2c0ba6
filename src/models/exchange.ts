/**
 * One attempt on the wire: a request to a provider and its answer to the caller.
 *
 * Modes: waiting (nothing came yet) -> collecting (an answer that is judged first) or forwarding (an answer that is
 * the caller's) -> over. The caller's pace is the provider's pace: when the caller does not read, the socket is not
 * read either. When the caller goes away the provider's connection is cut at once.
 */
import type { Transform } from "node:stream";
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import type { Sweepable, Sweeper } from "../lib/sweeper.ts";
import { decoderFor } from "./answer-encoding.ts";
import { AnswerTimeout } from "./answer-timeout.ts";
import type { BodyPipe } from "./body-pipes.ts";
import { HELD_ANSWER_MAX_BYTES, tooLong } from "./guardrails/answer-pipes.ts";
import { type HeldBytes, noRoom } from "./held-bytes.ts";
import type { AnswerSink, RunningCall } from "./provider-call.ts";
import type { UpstreamRequest } from "./upstream-request.ts";
import type { Upstream } from "./upstreams.ts";

export interface ExchangeOptions {
  upstream: Upstream;
  request: UpstreamRequest;
  down: Downstream;
  sweeper: Sweeper;
  /** Answers that go out as a whole take room here while they come. */
  held: HeldBytes;
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
}

/** Decides what happens with an attempt's answer; implemented by the code that made the attempt. */
export interface ExchangeJudge {
  /** True for an answer that is kept and judged instead of passed on. */
  collects(status: number, headers: string[]): boolean;
  /** Says how the answer is passed on; its head is written when the first byte goes out. */
  open(status: number, headers: string[]): OpenedBody;
  /** The caller is about to take what it has for the whole answer. */
  almostDone(): void;
  /** The answer is whole; its end goes out at once, or when what is returned is done. */
  complete(): Promise<void> | null;
  /** The pipe's own words for a failure in the middle of the answer. */
  failed(pipe: BodyPipe, error: unknown): Buffer | string | null;
}

export interface OpenedBody {
  pipe: BodyPipe;
  /** Decides about the whole answer, which is `sent` whole, before the caller gets any of it; null for most answers. */
  inspect: ((whole: Buffer) => Promise<Buffer>) | null;
  /** A whole answer goes out in one piece; chunks go out as they come; of events the head goes out at once. */
  sent: "whole" | "chunks" | "events";
  /** The length is given when it is known. */
  writeHead(bytes: number | null): void;
}

export type ExchangeResult =
  | { kind: "delivered" }
  /** The answer began and broke off; `told` when the caller has part of it, and was told in its own dialect. */
  | { kind: "interrupted"; error: unknown; told: boolean }
  | { kind: "collected"; status: number; headers: string[]; body: Buffer; complete: boolean }
  /** Nothing came. */
  | { kind: "failed"; error: unknown }
  /** The caller went away; `sent` when the provider had the request by then. */
  | { kind: "aborted"; sent: boolean };

/** Errors of providers are short; what is longer is not worth keeping. */
const COLLECTED_MAX_BYTES = 64 * 1024;
/** A caller that reads nothing for this long is gone, whatever its socket says. */
const CALLER_STALL_MAX_MS = 300_000;

export class ModelExchange implements AnswerSink, Sweepable {
  readonly #options: ExchangeOptions;
  readonly #judge: ExchangeJudge;
  readonly #done = Promise.withResolvers<ExchangeResult>();
  #mode: "waiting" | "collecting" | "forwarding" | "over" = "waiting";
  #call: RunningCall | null = null;
  #lastByteMs = 0;
  #stalledSinceMs: number | null = null;
  #status = 0;
  #headers: string[] = [];
  #collected: Buffer[] = [];
  #collectedBytes = 0;
  #body: OpenedBody | null = null;
  #held: (Buffer | string)[] = [];
  #heldBytes = 0;
  /** Taken from `held` of the options. */
  #roomTaken = 0;
  #headWritten = false;
  #decoder: Transform | null = null;
  #almostDone = false;

  constructor(options: ExchangeOptions, judge: ExchangeJudge) {
    this.#options = options;
    this.#judge = judge;
  }

  run(): Promise<ExchangeResult> {
    const { upstream, request, sweeper } = this.#options;
    if (this.#mode === "over") return this.#done.promise;
    this.#lastByteMs = sweeper.now;
    sweeper.add(this);
    try {
      this.#call = upstream.send(request, this);
    } catch (error) {
      this.#finish({ kind: "failed", error });
    }
    return this.#done.promise;
  }

  /** True once the caller has been sent a part of the answer. */
  get begun(): boolean {
    return this.#headWritten;
  }

  /** The caller went away. */
  abort(): void {
    if (this.#mode === "over") return;
    this.#finish({ kind: "aborted", sent: this.#call?.sent ?? false });
    this.#call?.abort();
  }

  /** The caller takes more of the answer. */
  drained(): void {
    if (this.#stalledSinceMs === null) return;
    this.#stalledSinceMs = null;
    this.#lastByteMs = this.#options.sweeper.now;
    this.#decoder?.resume();
    this.#call?.resume();
  }

  sweep(nowMs: number): void {
    const { firstByteTimeoutMs, idleTimeoutMs, down } = this.#options;
    const silentMs = nowMs - (this.#stalledSinceMs ?? this.#lastByteMs);
    if (this.#stalledSinceMs !== null) {
      if (silentMs <= CALLER_STALL_MAX_MS) return;
      this.abort();
      down.destroy();
    } else if (this.#mode === "waiting") {
      if (silentMs > firstByteTimeoutMs) this.#giveUp(new AnswerTimeout("FIRST_BYTE_TIMEOUT"));
    } else if (silentMs > idleTimeoutMs) this.#giveUp(new AnswerTimeout("IDLE_TIMEOUT"));
  }

  close(): void {
    this.#giveUp(new GatewayError("SHUTTING_DOWN"));
  }

  onHead(status: number, headers: string[]): void {
    if (this.#mode !== "waiting") return;
    this.#lastByteMs = this.#options.sweeper.now;
    this.#status = status;
    this.#headers = headers;
    if (this.#judge.collects(status, headers)) {
      this.#mode = "collecting";
      return;
    }
    this.#mode = "forwarding";
    this.#body = this.#judge.open(status, headers);
    const decoder = decoderFor(headers);
    if (decoder) this.#decode(decoder);
  }

  onData(chunk: Buffer): void {
    this.#lastByteMs = this.#options.sweeper.now;
    if (this.#mode === "collecting") this.#collect(chunk);
    else if (this.#mode !== "forwarding") return;
    else if (!this.#decoder) this.#forward(chunk);
    else if (!this.#decoder.write(chunk)) this.#call?.pause();
  }

  onReadEnd(): void {
    if (this.#mode === "forwarding" && !this.#decoder) this.#flush();
  }

  onEnd(): void {
    if (this.#mode === "collecting") this.#finishCollecting(true);
    else if (this.#decoder) this.#decoder.end();
    else if (this.#mode === "forwarding") this.#end();
  }

  onError(error: unknown): void {
    if (this.#mode === "waiting") this.#finish({ kind: "failed", error });
    else if (this.#mode === "collecting") this.#finishCollecting(false);
    else if (this.#mode === "forwarding") this.#break(error);
  }

  #giveUp(error: unknown): void {
    this.#call?.abort();
    this.onError(error);
  }

  #collect(chunk: Buffer): void {
    this.#collectedBytes += chunk.length;
    this.#collected.push(chunk);
    if (this.#collectedBytes <= COLLECTED_MAX_BYTES) return;
    this.#finishCollecting(false);
    this.#call?.abort();
  }

  #finishCollecting(complete: boolean): void {
    const body = Buffer.concat(this.#collected);
    this.#finish({ kind: "collected", status: this.#status, headers: this.#headers, body, complete });
  }

  /** An answer that a pipe cannot read ends this exchange, and not the process: decoders call from the event loop. */
  #forward(chunk: Buffer): void {
    try {
      this.#pass(chunk);
    } catch (error) {
      this.#giveUp(error);
    }
  }

  #pass(chunk: Buffer): void {
    if (this.#body?.sent === "whole") {
      if (!this.#options.held.take(chunk.length)) return void this.#giveUp(noRoom());
      this.#roomTaken += chunk.length;
    }
    const out = this.#body?.pipe.chunk(chunk) ?? null;
    if (out === null || out.length === 0) return;
    if (this.#body?.pipe.done && !this.#almostDone) {
      this.#almostDone = true;
      this.#judge.almostDone();
    }
    if (this.#body?.sent === "whole") {
      this.#held.push(out);
      this.#heldBytes += out.length;
      if (this.#body.inspect && this.#heldBytes > HELD_ANSWER_MAX_BYTES) this.#giveUp(tooLong());
      return;
    }
    this.#writeHead(null);
    if (!this.#options.down.write(bytesOf(out))) this.#waitForCaller();
  }

  /** Nothing more is there to be read: what was written goes out, of a stream also the head alone. */
  #flush(): void {
    if (this.#body?.sent === "events") this.#writeHead(null);
    if (this.#headWritten && !this.#options.down.flush()) this.#waitForCaller();
  }

  #waitForCaller(): void {
    if (this.#stalledSinceMs !== null) return;
    this.#stalledSinceMs = this.#options.sweeper.now;
    this.#call?.pause();
    this.#decoder?.pause();
  }

  #end(): void {
    try {
      const out = this.#body?.pipe.end() ?? null;
      if (out !== null) this.#held.push(out);
    } catch (error) {
      this.#break(error);
      return;
    }
    const inspect = this.#body?.inspect ?? null;
    if (inspect === null) this.#complete();
    else void this.#inspect(inspect);
  }

  async #inspect(inspect: NonNullable<OpenedBody["inspect"]>): Promise<void> {
    try {
      this.#held = [await inspect(Buffer.concat(this.#held.map(bytesOf)))];
    } catch (error) {
      if (this.#mode !== "over") this.#break(error);
      return;
    }
    if (this.#mode !== "over") this.#complete();
  }

  #complete(): void {
    const settled = this.#judge.complete();
    if (settled) void settled.then(() => this.#deliver());
    else this.#deliver();
  }

  #deliver(): void {
    if (this.#mode === "over") return;
    this.#close();
    this.#finish({ kind: "delivered" });
  }

  #break(error: unknown): void {
    const { down } = this.#options;
    if (!this.#headWritten) {
      this.#finish({ kind: "interrupted", error, told: false });
      return;
    }
    const out = this.#body ? this.#judge.failed(this.#body.pipe, error) : null;
    this.#finish({ kind: "interrupted", error, told: true });
    if (out === null) {
      down.destroy();
      return;
    }
    if (out.length > 0) down.write(bytesOf(out));
    down.end([]);
  }

  #close(): void {
    const { down } = this.#options;
    const held = this.#held.map(bytesOf);
    const last = held.length > 1 ? Buffer.concat(held) : held[0];
    this.#writeHead(last?.length ?? 0);
    if (last && last.length > 0) down.write(last);
    down.end([]);
  }

  #writeHead(bytes: number | null): void {
    if (this.#headWritten) return;
    this.#body?.writeHead(bytes);
    this.#headWritten = true;
  }

  /** Identity was asked for; who compresses nevertheless is read through, so that the answer can be metered. */
  #decode(decoder: Transform): void {
    this.#decoder = decoder;
    decoder.on("data", (chunk: Buffer) => {
      if (this.#mode !== "forwarding") return;
      this.#forward(chunk);
      if (this.#mode === "forwarding") this.#flush();
    });
    decoder.on("drain", () => {
      if (this.#stalledSinceMs === null) this.#call?.resume();
    });
    decoder.on("end", () => {
      if (this.#mode === "forwarding") this.#end();
    });
    decoder.on("error", (error) => {
      if (this.#mode === "forwarding") this.#giveUp(error);
    });
  }

  #finish(result: ExchangeResult): void {
    if (this.#mode === "over") return;
    this.#mode = "over";
    this.#options.held.release(this.#roomTaken);
    this.#options.sweeper.delete(this);
    this.#done.resolve(result);
  }
}

const bytesOf = (part: Buffer | string): Buffer => (typeof part === "string" ? Buffer.from(part) : part);
