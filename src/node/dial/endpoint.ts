/** Where a workload's sockets are. One variant per way of reaching one. */
export interface Endpoint {
  kind: "unix";
  node: string;
  /** Folder shared with the workload. It is hostile ground: names in it may be symbolic links. */
  dir: string;
}

/** The in-sandbox API, the driver's own control socket, or a port inside. */
export type DialTarget = "api" | "control" | number;

export interface CallOptions {
  signal?: AbortSignal;
}
