/** Records that a tag could not be pulled or built. */
import { PlatformError } from "../../contract/errors.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Modification } from "../../store/resources/resources.ts";
import type { Deps } from "../port.ts";
import { type ImageTag, tagsOf } from "./images.ts";

/** `more`: what else changes in the record. */
export async function failTag(
  { workspace, uid }: Resource,
  tag: string,
  error: unknown,
  deps: Pick<Deps, "store" | "log">,
  more: (current: Resource) => Modification = () => ({}),
): Promise<void> {
  const isTold = error instanceof PlatformError && error.status < 500;
  if (!isTold) deps.log.warn({ err: error, uid, tag }, "an image could not be pulled or built");
  const message = isTold ? error.message : `Tag '${tag}' could not be made; the server's log says why.`;
  await deps.store.resources
    .update(workspace, uid, (current) => ({
      ...more(current),
      spec: { ...current.spec, tags: tagsOf(current).map((each) => (each.name === tag ? over(each) : each)) },
      status: "FAILED",
      event: { type: "failed", status: "FAILED", message },
    }))
    .catch((cause: unknown) => deps.log.warn({ err: cause, uid }, "the end of a pull or build could not be recorded"));
}

const over = ({ awaited: _, building: __, ...tag }: ImageTag): ImageTag =>
  tag.loaded === undefined ? { ...tag, failed: true } : tag;
