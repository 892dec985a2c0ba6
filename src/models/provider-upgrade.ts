/** A request to a provider that asks for another protocol, on a connection of its own. */
import type { Duplex } from "node:stream";
import type { ResponseHead } from "../http/http1/response-parser.ts";
import type { ExchangeSink, UpstreamConnection } from "../http/http1/upstream-connection.ts";
import type { UpstreamPool } from "../http/http1/upstream-pool.ts";
import { AnswerTimeout } from "./answer-timeout.ts";
import type { ProviderOrigin, WireRequest } from "./provider-call.ts";

export type UpgradeResult =
  /** `rest` are bytes that came behind the head. */
  | { kind: "switched"; headers: string[]; stream: Duplex; rest: Buffer }
  /** The provider stayed with HTTP: an error, as a rule. */
  | { kind: "answered"; status: number; headers: string[]; body: Buffer };

export type UpgradeRequest = Pick<WireRequest, "path" | "fields">;

/** An answer instead of the protocol is a short error. */
const BODY_MAX_BYTES = 64 * 1024;
const HANDSHAKE_MS = 30_000;

/** Rejects when there is no connection or no answer, and when the signal aborts. */
export async function upgradeAt(
  pool: UpstreamPool,
  { key, host, dial }: ProviderOrigin,
  { path, fields }: UpgradeRequest,
  signal: AbortSignal,
): Promise<UpgradeResult> {
  const connection = await pool.open(key, dial);
  const sink = new UpgradeSink(connection);
  const timer = setTimeout(() => sink.fail(new AnswerTimeout("FIRST_BYTE_TIMEOUT")), HANDSHAKE_MS);
  const abort = (): void => sink.fail(signal.reason);
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  else {
    connection.begin(sink, { method: "GET", upgrade: true });
    connection.requestSent();
    connection.stream.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n`, "latin1");
  }
  try {
    return await sink.result;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
}

class UpgradeSink implements ExchangeSink {
  readonly #connection: UpstreamConnection;
  readonly #done = Promise.withResolvers<UpgradeResult>();
  #head: ResponseHead | null = null;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(connection: UpstreamConnection) {
    this.#connection = connection;
  }

  get result(): Promise<UpgradeResult> {
    return this.#done.promise;
  }

  fail(error: unknown): void {
    this.#connection.destroy();
    this.#done.reject(error);
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
  }

  onBody(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= BODY_MAX_BYTES) this.#chunks.push(chunk);
    else this.#connection.destroy();
    if (this.#bytes > BODY_MAX_BYTES) this.onEnd();
  }

  onEnd(): void {
    const { status = 0, headers = [] } = this.#head ?? {};
    this.#done.resolve({ kind: "answered", status, headers, body: Buffer.concat(this.#chunks) });
  }

  onUpgrade(stream: Duplex, rest: Buffer): void {
    this.#done.resolve({ kind: "switched", headers: this.#head?.headers ?? [], stream, rest });
  }

  onBroken(error: Error): void {
    this.#done.reject(error);
  }

  onInformational(): void {}
  onReadEnd(): void {}
  onWritable(): void {}
}
