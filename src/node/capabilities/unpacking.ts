/** Archives of strangers, unpacked on this machine. */
import type { CallOptions } from "../dial/endpoint.ts";

export interface Unpacking {
  /**
   * Unpacks an archive of plain files (zip, tar or tar.gz) into an empty folder of this machine, in a cage: whatever the
   * archive holds, nothing outside the folder changes. Refuses what is no file or folder, and links unless the limits allow them.
   */
  unpack(archive: string, folder: string, limits: UnpackLimits, options?: CallOptions): Promise<Unpacked>;
}

export interface UnpackLimits {
  entriesMax: number;
  /** Of all files together. */
  bytesMax: number;
  /** Take symbolic and hard links of a tar. Default false. */
  links?: boolean;
}

export interface Unpacked {
  /** Of all files together. */
  sizeBytes: number;
}
