/** A call of the management API from inside the server, with the credentials of the request that causes it. */
export interface DirectRequest {
  params?: Record<string, string>;
  query?: Record<string, string>;
  body?: unknown;
  /** Names in lower case: the credentials, the workspace, the version. */
  headers: Record<string, string>;
  requestId: string;
  /** Address of the client; undefined for a client inside a workload. */
  peer: string | undefined;
  /** The uid of the workload that the client is in. */
  workload?: string | undefined;
}

export interface DirectAnswer {
  status: number;
  /** Parsed JSON; null for an empty body. Of a refusal: `{code, error, message}`. */
  body: unknown;
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>;
}

/** `operation` is the operation's id. A refusal is an answer, too. */
export type DirectCall = (operation: string, request: DirectRequest) => Promise<DirectAnswer>;
