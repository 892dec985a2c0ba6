import { PlatformError } from "../../../../contract/errors.ts";

/** Refusal of images, mounts and snapshots where workloads are plain processes. */
export const needsIsolation = (): PlatformError =>
  new PlatformError("unprocessable", "Workloads on this machine are not isolated: they have no images or mounts.");
