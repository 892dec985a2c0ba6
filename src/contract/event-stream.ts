/** An answer that goes on: server-sent events (text/event-stream), as the handler of an operation sees them. */

export interface ServerEvent {
  event: string;
  data: unknown;
  /** The place in the stream. A client that comes back sends the last one in the Last-Event-ID header. */
  id?: string;
}

export interface EventOutput {
  /** Writes one event. Throws nothing: a stream that has ended ignores it. */
  send(event: ServerEvent): void;
  /** False while the client has much to read. The stream then holds its events back until `onDrain`. */
  hasRoom(): boolean;
  /** Ends the stream with an `end` event that tells the client why. */
  end(message: string): void;
}

/** Returned by the handler of an operation that is declared with `events`. */
export interface EventStream {
  /** Begins to send. `stop` is called once, when the stream ends for any reason. */
  start(out: EventOutput): { onDrain(): void; stop(): void };
}
