/** Copies of volumes as they are at one moment: nothing is written to a volume while it is copied. */
import type { Readable } from "node:stream";
import type { Volume, VolumeSpec } from "./volumes.ts";

export interface VolumeCopies {
  /** Keeps a copy under `id` until it is removed. The same id again answers with what is there. */
  take(volume: string, id: string): Promise<VolumeCopy>;
  /** Makes a volume with the size and the files of the source. The same volume again answers with what is there. */
  restore(volume: string, source: CopySource): Promise<Volume>;
  /** Makes a volume with the files of the folder `from`; refuses a volume that has storage already. */
  fill(spec: VolumeSpec & { from: string }): Promise<Volume>;
  /** The files of a copy as a tar. Ends with an error when not all of them could be read. */
  pack(id: string): Promise<Readable>;
  remove(id: string): Promise<void>;
  list(): Promise<VolumeCopy[]>;
}

/** A copy that was kept, or a volume as it is now. */
export type CopySource = { copy: string } | { volume: string };

export interface VolumeCopy {
  id: string;
  sizeMb: number;
  /** Space that the copy takes. Blocks that it shares with the volume count too. */
  usedBytes: number;
  createdAt: string;
}
