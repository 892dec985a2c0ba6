/** Images that the driver keeps. Without this capability a driver gets the names of images as clients wrote them. */
import type { Readable } from "node:stream";
import type { RemoteImage } from "../../registry/manifest.ts";
import type { CallOptions } from "../dial/endpoint.ts";

export interface Images {
  /** Takes in a `docker save` or OCI image tar under one more name. */
  load(tarPath: string, name: string, options?: CallOptions): Promise<Image>;
  /**
   * Begins an image of a registry, whose layers come one at a time. A driver without this gets the image as a tar.
   * `repository` is where the caller was allowed to read the image: `docker.io/library/python`.
   */
  assemble?(image: RemoteImage, repository: string): Promise<Assembly>;
  /**
   * Keeps an image that was made here as one that a registry can serve, under the name that belongs to the digest of its
   * manifest. For drivers that keep layers themselves.
   */
  addManifest?(name: string, nameFor: (digest: string) => string): Promise<AddressedImage>;
  /** A manifest, configuration or layer of an image that was pulled or has a manifest of ours; null when it is not here. */
  part?(name: string, digest: string): Promise<ImagePart | null>;
  /** null: no such image; a create that names it would be refused. */
  find(name: string): Promise<Image | null>;
  /** Bytes of its files, which may have to be counted first; null when there is no such image. */
  bytes(name: string): Promise<number | null>;
  list(): Promise<Image[]>;
  remove(name: string): Promise<boolean>;
  /** Removes what images left whose workloads went on after them; for drivers that know of such. */
  sweep?(): Promise<void>;
}

/** An image under the digest of its manifest. */
export interface AddressedImage {
  name: string;
  digest: string;
  /** Of the unpacked files. */
  sizeBytes: number;
}

/** One of the files that an image consists of in a registry. */
export interface ImagePart {
  sizeBytes: number;
  open(): Readable;
  /** The file itself; absent when its bytes are made as they are read. */
  file?: string;
}

/** An image that is being put together. Disposing of one that is not finished leaves nothing. */
export interface Assembly extends AsyncDisposable {
  /** How many layers, from the lowest on, are here already and need not be added. */
  readonly present: number;
  /** Adds the next layer: a file as the registry keeps it, which stays there until the image is finished. */
  add(file: string, options?: CallOptions): Promise<void>;
  finish(name: string, options?: CallOptions): Promise<Image>;
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
  /** What the image says of itself, for images that are built on it; absent where the driver kept none. */
  document?: ImageDocument;
  createdAt: string;
}

/** The member `config` of an image's configuration, in the words of registries. */
export interface ImageDocument {
  Env?: string[] | null | undefined;
  WorkingDir?: string | null | undefined;
  Entrypoint?: string[] | null | undefined;
  Cmd?: string[] | null | undefined;
  User?: string | null | undefined;
  Shell?: string[] | null | undefined;
  ExposedPorts?: Record<string, unknown> | null | undefined;
  Labels?: Record<string, string> | null | undefined;
  Volumes?: Record<string, unknown> | null | undefined;
  StopSignal?: string | null | undefined;
  Healthcheck?: Record<string, unknown> | null | undefined;
  OnBuild?: string[] | null | undefined;
}

export interface ImageUser {
  uid: number;
  gid: number;
  home: string;
}
