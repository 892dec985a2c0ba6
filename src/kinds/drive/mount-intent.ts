/** One drive in one sandbox. */
export interface DriveMountIntent {
  /** Distinguishes this mount request from a later one for the same path. */
  id: string;
  drive: string;
  /** The node that has the drive, where it is another than the sandbox's. */
  node?: string;
  driveName: string;
  mountPath: string;
  drivePath: string;
  readOnly: boolean;
  phase: "wanted" | "mounted" | "leaving" | "failed";
  /** Why the last attempt failed. */
  error?: string;
}
