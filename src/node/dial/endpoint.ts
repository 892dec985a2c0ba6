/** Where a workload's sockets are. One variant per way of reaching one. */
export type Endpoint = UnixEndpoint | TcpEndpoint;

export interface UnixEndpoint {
  kind: "unix";
  node: string;
  /** Folder shared with the workload. It is hostile ground: names in it may be symbolic links. */
  dir: string;
}

export interface TcpEndpoint {
  kind: "tcp";
  node: string;
  host: string;
  port: number;
  /** Of this life of the workload alone. Both sides prove that they know it; it is never sent. */
  token: string;
}

/** The in-sandbox API, the driver's own control socket, or a port inside. */
export type DialTarget = "api" | "control" | number;

export interface CallOptions {
  signal?: AbortSignal;
}
