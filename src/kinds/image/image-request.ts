/** How the image of a workload is asked for, and the image that the workload then starts from. */
import type { ImagePull } from "../../node/workload.ts";
import type { PullPolicy } from "./images.ts";

export interface ImageRequest {
  policy?: PullPolicy | undefined;
  /** Registry credentials of the workload. */
  dockerConfig?: unknown;
  signal?: AbortSignal;
  /** Told about a pull that has begun and goes on, now and then. */
  tell?: (message: string) => void;
}

/** An image that is on this machine. */
export interface StartImage {
  /** The driver's name for the image. */
  loaded: string;
  /** When its tag got this content; null for images that the operator installed. It decides who gets secrets. */
  changedAt: string | null;
  /** `docker.io/library/python:3.12`, with its digest; absent where the driver keeps no images. */
  source?: string;
  digest?: string;
  /** Whether it was pulled for this start. */
  isNew: boolean;
  /** For the driver, where its engine pulls the image. */
  pull?: ImagePull;
}
