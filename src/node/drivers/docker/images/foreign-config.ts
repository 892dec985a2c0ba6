/**
 * The configuration of a stranger's image as the engine gets it: without labels that this driver sets itself, by which
 * it finds its own things. A configuration without such labels keeps its bytes, and so the image its id.
 */
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";
import { LABEL_PREFIX } from "../workload/record.ts";

/** Longest labels as JSON: each list of images has the labels of all. Real ones have a kilobyte. */
const LABELS_LENGTH_MAX = 64 * 1024;

const labelled = z.looseObject({
  config: z.looseObject({ Labels: z.record(z.string(), z.unknown()).nullish() }).nullish(),
});

export function foreignConfig(bytes: Buffer): Buffer {
  const document = labelled.parse(JSON.parse(bytes.toString("utf8")));
  const labels = document.config?.Labels;
  if (!document.config || !labels) return bytes;
  if (JSON.stringify(labels).length > LABELS_LENGTH_MAX)
    throw new PlatformError("bad_request", "The image is refused: its labels are too long.");
  const kept = Object.entries(labels).filter(([key]) => !key.startsWith(LABEL_PREFIX));
  if (kept.length === Object.keys(labels).length) return bytes;
  document.config.Labels = Object.fromEntries(kept);
  return Buffer.from(JSON.stringify(document));
}
