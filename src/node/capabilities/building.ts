/** Images made on this machine out of other images: what an ended workload wrote becomes a layer. */
import type { Image, ImageDocument } from "./images.ts";

export interface Building {
  /** Keeps an image with the files of another, or with none (`from: null`), under one more name. */
  derive(name: string, from: string | null, document: ImageDocument): Promise<Image>;
  /**
   * Keeps an image with the files of an ended workload: those of its image, and a layer with what the workload wrote.
   * Nothing is copied, so the workload has lost its files afterwards. `mountPoints`: folders that were made for mounts;
   * those that are empty are left out.
   */
  commit(uid: string, name: string, document: ImageDocument, mountPoints: readonly string[]): Promise<Image>;
}
