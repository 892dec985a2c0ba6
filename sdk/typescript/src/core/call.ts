/** The shape of a call of the management API, shared by the generated files and the client. */

export interface Operation {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below `/v0`, with `{param}` segments. */
  readonly path: string;
  readonly paged?: boolean;
  /** Media type of a body of bytes. */
  readonly stream?: string;
}

/** What every call takes. */
export interface CallOptions {
  /** Ends the call; its promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds until one attempt is given up. Default 120,000. */
  timeoutMs?: number | undefined;
  /** Sent as `Idempotency-Key` with a POST. Default: a new one for each call, the same for its retries. */
  idempotencyKey?: string | undefined;
}

export type QueryValue = string | number | boolean | undefined;

export interface CallInput extends CallOptions {
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, QueryValue>>;
  body?: unknown;
}

/** A list: `for await` yields every item, page after page; `await list.toArray()` is all of them. */
export interface Items<Item> extends AsyncIterable<Item> {
  toArray(): Promise<Item[]>;
}
