/** Directories without a size limit, shared by many workloads at once. */

export interface Drives {
  /** The same id again changes nothing. */
  create(id: string, options?: DriveOptions): Promise<void>;
  /** Bytes that its files take up; null when there is none of that id. */
  bytes(id: string): Promise<number | null>;
  destroy(id: string): Promise<void>;
}

export interface DriveOptions {
  /** Host directory whose files it starts with; it is there with all of them or not at all. */
  from?: string;
  /** It is removed when the driver opens the next time, unless it was destroyed before: for work that does not outlive a server. */
  temporary?: boolean;
}
