/** Images that the driver keeps. Without this capability a driver gets the names of images as clients wrote them. */
import type { CallOptions } from "../dial/endpoint.ts";

export interface Images {
  /** Takes in a `docker save` or OCI image tar under one more name. */
  load(tarPath: string, name: string, options?: CallOptions): Promise<Image>;
  /** null: no such image; a create that names it would be refused. */
  find(name: string): Promise<Image | null>;
  /** Bytes of its files, which may have to be counted first; null when there is no such image. */
  bytes(name: string): Promise<number | null>;
  list(): Promise<Image[]>;
  remove(name: string): Promise<boolean>;
}

export interface Image {
  name: string;
  /** Content address. */
  digest: string;
  sizeBytes: number;
  env: Record<string, string>;
  workDir: string;
  /** Entry point and arguments; empty when the image names none. */
  argv: string[];
  /** Who runs its processes; absent: root. */
  user?: ImageUser;
  createdAt: string;
}

export interface ImageUser {
  uid: number;
  gid: number;
  home: string;
}
