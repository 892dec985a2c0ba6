/**
 * Images that were made here, under the digest of a manifest: what the record shows, what runs and what the registry
 * serves are the same.
 */
import type { Image } from "../../node/capabilities/images.ts";
import { need } from "../../node/capabilities/need.ts";
import { pulledName } from "../../node/images/puller.ts";
import type { Deps } from "../port.ts";
import type { NewTag } from "./images.ts";

/** Calls `keep` with what a tag says of the image. With a driver that keeps no layers the image stays as it is. */
export async function withManifest<T>(
  image: Pick<Image, "name" | "digest" | "sizeBytes">,
  { driver, puller }: Pick<Deps, "driver" | "puller">,
  keep: (content: Pick<NewTag, "loaded" | "digest" | "named" | "sizeBytes">) => Promise<T>,
): Promise<T> {
  const images = await need(driver, "images");
  const { name, digest, sizeBytes } = image;
  if (!images.addManifest) return keep({ loaded: name, digest, sizeBytes });
  const made = await images.addManifest(name, pulledName);
  return puller.holding(made.name, () =>
    keep({ loaded: made.name, digest: made.digest, named: made.digest, sizeBytes: made.sizeBytes }),
  );
}
