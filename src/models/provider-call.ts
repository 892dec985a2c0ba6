/**
 * One request on a connection to a provider. A kept connection may be closing at the far end while the request is
 * written: when not a single byte of an answer came on one, the request goes out again, once, on a fresh one.
 */
import type { Socket } from "node:net";
import type { ResponseHead } from "../http/http1/response-parser.ts";
import type { ExchangeSink, UpstreamConnection } from "../http/http1/upstream-connection.ts";
import type { UpstreamPool } from "../http/http1/upstream-pool.ts";

/** A request that is ready to be sent, except for the length of its body. */
export interface WireRequest {
  method: string;
  path: string;
  /** Lines of the head behind Host, each with its line end. */
  fields: string;
  body: Buffer | null;
}

export interface AnswerSink {
  onHead(status: number, headers: string[]): void;
  onData(chunk: Buffer): void;
  /** Everything that had arrived has been handed over; more may come later. */
  onReadEnd(): void;
  onEnd(): void;
  /** No answer, or no more of it, will come. */
  onError(error: unknown): void;
}

export interface RunningCall {
  /** True once the provider may have the request. */
  readonly sent: boolean;
  pause(): void;
  resume(): void;
  /** Ends it; the sink hears nothing more. */
  abort(): void;
}

export interface ProviderOrigin {
  /** Connections are kept under it. */
  key: string;
  /** The value of the Host header. */
  host: string;
  dial(): Promise<Socket>;
}

/** Up to this size one copy is cheaper than a second buffer for the kernel to gather. */
const COPY_MAX = 16 * 1024;
const BODILESS = new Set(["GET", "HEAD", "DELETE", "OPTIONS"]);

export class ProviderCall implements ExchangeSink, RunningCall {
  readonly #pool: UpstreamPool;
  readonly #origin: ProviderOrigin;
  readonly #request: WireRequest;
  #sink: AnswerSink | null;
  #connection: UpstreamConnection | null = null;
  #repeated = false;
  sent = false;

  constructor(pool: UpstreamPool, origin: ProviderOrigin, request: WireRequest, sink: AnswerSink) {
    this.#pool = pool;
    this.#origin = origin;
    this.#request = request;
    this.#sink = sink;
    const kept = pool.take(origin.key, Number.POSITIVE_INFINITY);
    if (kept === null) this.#dial();
    else this.#send(kept);
  }

  pause(): void {
    this.#connection?.stream.pause();
  }

  resume(): void {
    this.#connection?.stream.resume();
  }

  abort(): void {
    this.#sink = null;
    this.#connection?.destroy();
    this.#connection = null;
  }

  #dial(): void {
    const { key, dial } = this.#origin;
    this.#pool.open(key, dial).then(
      (connection) => {
        if (this.#sink === null) connection.destroy();
        else this.#send(connection);
      },
      (error: unknown) => this.#fail(error),
    );
  }

  #send(connection: UpstreamConnection): void {
    const { method, path, fields, body } = this.#request;
    const { stream } = connection;
    this.#connection = connection;
    this.sent = true;
    connection.begin(this, { method, upgrade: false });
    const start = `${method} ${path} HTTP/1.1\r\nHost: ${this.#origin.host}\r\n${fields}`;
    if (body === null) {
      write(connection, Buffer.from(`${start}${BODILESS.has(method) ? "" : "Content-Length: 0\r\n"}\r\n`, "latin1"));
      return;
    }
    const head = `${start}Content-Length: ${body.length}\r\n\r\n`;
    if (body.length <= COPY_MAX) {
      const whole = Buffer.allocUnsafe(head.length + body.length);
      whole.write(head, 0, "latin1");
      body.copy(whole, head.length);
      write(connection, whole);
      return;
    }
    stream.cork();
    stream.write(head, "latin1");
    write(connection, body);
    stream.uncork();
  }

  onInformational(): void {}

  onHead({ status, headers }: ResponseHead): void {
    this.#sink?.onHead(status, headers);
  }

  onBody(chunk: Buffer): void {
    this.#sink?.onData(chunk);
  }

  onReadEnd(): void {
    this.#sink?.onReadEnd();
  }

  onEnd(): void {
    const sink = this.#sink;
    this.#connection = null;
    this.#sink = null;
    sink?.onEnd();
  }

  /** The whole body was handed to the connection at once: there is no more of it to write. */
  onWritable(): void {}

  onUpgrade(): void {}

  onBroken(error: Error, untouched: boolean): void {
    const connection = this.#connection;
    this.#connection = null;
    if (connection?.reused && untouched && !this.#repeated && this.#sink !== null) {
      this.#repeated = true;
      this.#dial();
    } else this.#fail(error);
  }

  #fail(error: unknown): void {
    const sink = this.#sink;
    this.#sink = null;
    sink?.onError(error);
  }
}

/** An answer may come before the request has left completely; only then is the connection clean for the next. */
function write(connection: UpstreamConnection, bytes: Buffer): void {
  const { stream } = connection;
  if (bytes.length > COPY_MAX || "encrypted" in stream) stream.write(bytes, () => connection.requestSent());
  else {
    stream.write(bytes);
    if (stream.writableLength === 0) connection.requestSent();
  }
}
