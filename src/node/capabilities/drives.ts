/** Directories without a size limit, shared by many workloads at once. */

export interface Drives {
  /** The same id again changes nothing. */
  create(id: string, options?: DriveOptions): Promise<void>;
  /** Bytes that its files take up; null when there is none of that id. */
  bytes(id: string): Promise<number | null>;
  /** Where this server reaches the files itself; null where the driver keeps them out of its sight. The drive exists. */
  folders(id: string): Promise<DriveFolders | null>;
  destroy(id: string): Promise<void>;
}

export interface DriveFolders {
  /** The drive's files, which workloads see. */
  files: string;
  /** A folder for the platform's own files about the drive, on the same file system, that no workload sees. */
  work: string;
}

export interface DriveOptions {
  /** Host directory whose files it starts with; it is there with all of them or not at all. */
  from?: string;
  /** It is removed when the driver opens the next time, unless it was destroyed before: for work that does not outlive a server. */
  temporary?: boolean;
}
