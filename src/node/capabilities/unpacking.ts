/** Archives of strangers, unpacked on this machine. */
import type { CallOptions } from "../dial/endpoint.ts";

export interface Unpacking {
  /**
   * Unpacks an archive of plain files (zip, tar or tar.gz) into an empty folder of this machine, in a cage: whatever the
   * archive holds, nothing outside the folder changes. Refuses what is no file or folder.
   */
  unpack(archive: string, folder: string, limits: UnpackLimits, options?: CallOptions): Promise<Unpacked>;
}

export interface UnpackLimits {
  entriesMax: number;
  /** Of all files together. */
  bytesMax: number;
}

export interface Unpacked {
  /** Of all files together. */
  sizeBytes: number;
}
