import { type Image, isBusy } from "../../api/images.ts";
import { toneOf } from "../../lib/tones.ts";
import { Badge } from "../../ui/badge.tsx";

/** A digest as a tag is longer than a column. */
export const shortTag = (tag: string): string => (tag.startsWith("sha256-") ? tag.slice(0, 15) : tag);

export function Status({ image }: { image: Image }) {
  const { status = "" } = image.metadata;
  if (status === "") return null;
  return <Badge tone={toneOf(status)}>{isBusy(image) && status === "DEPLOYING" ? "PULLING" : status}</Badge>;
}
