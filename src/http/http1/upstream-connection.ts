/**
 * One connection to an instance of a workload. It carries one exchange at a time and goes back to its owner when the
 * exchange has left it clean: request sent completely, response read completely, nothing behind it.
 *
 * Modes: idle <-> busy -> closed, or busy -> upgraded, when the stream becomes the exchange's own.
 */
import type { Duplex } from "node:stream";
import { type ResponseHead, ResponseParser, type ResponseSink } from "./response-parser.ts";

export interface ExchangeSink {
  onInformational(status: number, headers: string[]): void;
  onHead(head: ResponseHead): void;
  onBody(chunk: Buffer): void;
  /** All data that has arrived was passed on; more may come later. */
  onReadEnd(): void;
  /** The response is complete. The connection no longer belongs to the exchange. */
  onEnd(trailers: string[]): void;
  /** The connection can take more of the request. */
  onWritable(): void;
  /** The connection no longer speaks HTTP and is the exchange's own; `rest` came behind the head. */
  onUpgrade(stream: Duplex, rest: Buffer): void;
  /** The exchange failed. `untouched` means that not a single byte of a response had come. */
  onBroken(error: Error, untouched: boolean): void;
}

export interface ConnectionOwner {
  onIdle(connection: UpstreamConnection): void;
  onClosed(connection: UpstreamConnection): void;
  /** A connection with this key that was upgraded has closed. */
  onUpgradedClosed(key: string): void;
}

export class UpstreamConnection implements ResponseSink {
  readonly key: string;
  readonly stream: Duplex;
  /** True when an earlier exchange used this connection, which the workload may be closing right now. */
  reused = false;
  idleSinceMs = 0;
  /** Idle timeout that the workload announced; null when it announced none. */
  keepAliveSeconds: number | null = null;
  #owner: ConnectionOwner;
  #parser = new ResponseParser();
  #sink: ExchangeSink | null = null;
  #requestSent = false;
  #keepAlive = false;
  #trailers: string[] | null = null;
  #failure: Error | null = null;

  constructor(key: string, stream: Duplex, owner: ConnectionOwner) {
    this.key = key;
    this.stream = stream;
    this.#owner = owner;
    stream.on("data", this.#onData);
    stream.on("drain", this.#onDrain);
    stream.on("end", this.#onStreamEnd);
    stream.on("error", this.#onStreamError);
    stream.on("close", this.#onStreamClose);
  }

  begin(sink: ExchangeSink, request: { method: string; upgrade: boolean }): void {
    this.#sink = sink;
    this.#requestSent = false;
    this.#keepAlive = false;
    this.#trailers = null;
    this.#parser.expect(this, request);
  }

  /** The request has been written completely. */
  requestSent(): void {
    this.#requestSent = true;
  }

  /** Closes the connection; its exchange gets no more events. */
  destroy(): void {
    this.#sink = null;
    this.#parser.stop();
    this.stream.destroy();
  }

  onInformational(status: number, headers: string[]): void {
    this.#sink?.onInformational(status, headers);
  }

  onHead(head: ResponseHead): void {
    this.#keepAlive = head.keepAlive;
    this.keepAliveSeconds = head.keepAliveSeconds;
    this.#sink?.onHead(head);
  }

  onBody(chunk: Buffer): void {
    this.#sink?.onBody(chunk);
  }

  onEnd(trailers: string[]): void {
    this.#trailers = trailers;
  }

  #onData = (chunk: Buffer): void => {
    let rest: Buffer;
    try {
      rest = this.#parser.push(chunk);
    } catch (error) {
      this.#break(error as Error);
      return;
    }
    if (this.#trailers !== null) this.#finish(this.#trailers, rest.length === 0);
    else if (this.#parser.upgraded) this.#upgrade(rest);
    // Bytes outside a response must not reach the next exchange.
    else if (rest.length > 0) this.#break(new Error("bytes outside a response"));
    else this.#sink?.onReadEnd();
  };

  /** Returns the connection to its owner first, so that work started by the end of this exchange can reuse it. */
  #finish(trailers: string[], nothingBehind: boolean): void {
    const sink = this.#sink;
    this.#sink = null;
    this.#trailers = null;
    if (nothingBehind && this.#keepAlive && this.#requestSent && !this.stream.destroyed) {
      this.reused = true;
      if (this.stream.isPaused()) this.stream.resume();
      this.#owner.onIdle(this);
    } else this.destroy();
    sink?.onEnd(trailers);
  }

  #upgrade(rest: Buffer): void {
    const { stream } = this;
    const sink = this.#sink;
    this.#sink = null;
    stream.removeListener("data", this.#onData);
    stream.removeListener("drain", this.#onDrain);
    stream.removeListener("end", this.#onStreamEnd);
    stream.removeListener("error", this.#onStreamError);
    stream.removeListener("close", this.#onStreamClose);
    stream.on("error", ignore);
    stream.on("close", upgradedClosed(this.#owner, this.key));
    stream.pause();
    if (sink === null) stream.destroy();
    else sink.onUpgrade(stream, rest);
  }

  #onDrain = (): void => {
    this.#sink?.onWritable();
  };

  #onStreamEnd = (): void => {
    if (this.#parser.end() && this.#trailers !== null) this.#finish(this.#trailers, false);
    else this.#break(new Error("the workload closed the connection"));
  };

  #onStreamError = (error: Error): void => {
    this.#failure = error;
  };

  #onStreamClose = (): void => {
    this.#owner.onClosed(this);
    this.#break(this.#failure ?? new Error("the connection was closed"));
  };

  #break(error: Error): void {
    const sink = this.#sink;
    const untouched = !this.#parser.started;
    this.destroy();
    sink?.onBroken(error, untouched);
  }
}

// A broken connection is reported by "close".
const ignore = (): void => {};

/** Does not refer to the connection, whose parser and listeners an idle WebSocket would otherwise keep. */
const upgradedClosed = (owner: ConnectionOwner, key: string) => (): void => owner.onUpgradedClosed(key);
