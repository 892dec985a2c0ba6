/**
 * Who made a batch. A provider works on a batch for hours and tells its tokens only to whoever looks at it later, so the
 * gateway writes the caller into the batch's own metadata and reads it there: nothing has to be kept here, and batches
 * that were not made through the gateway are not counted.
 */
import { isRecord } from "../../lib/untrusted-json.ts";
import type { ClientCall } from "../client-call.ts";
import type { ModelTarget, Subject } from "../model-records.ts";

export interface BatchMark {
  workspace: string;
  model: string;
  subject: Subject | null;
}

/** The key in the metadata of a batch. */
const MARK = "gateway_caller";

const CREATES = /\/batches\/?$/;
const LOOKS = /\/batches(?:\/[^/]+(?:\/cancel)?)?\/?$/;

export const createsBatch = ({ method, path }: Pick<ClientCall, "method" | "path">): boolean =>
  method === "POST" && CREATES.test(path);

/** True when the answer is a batch or a list of batches. */
export const looksAtBatches = ({ path }: Pick<ClientCall, "path">): boolean => LOOKS.test(path);

/** The metadata of a new batch. What the caller wrote under the same key is replaced. */
export function markedMetadata(metadata: unknown, { workspace, model, subject }: ModelTarget): Record<string, unknown> {
  const mark = JSON.stringify([workspace, model, subject?.type ?? "", subject?.id ?? ""]);
  return { ...(isRecord(metadata) ? metadata : {}), [MARK]: mark };
}

/** Null for a batch that was not made through the gateway. */
export function readMark(metadata: unknown): BatchMark | null {
  const text = isRecord(metadata) ? metadata[MARK] : undefined;
  if (typeof text !== "string") return null;
  let parts: unknown;
  try {
    parts = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(parts) || parts.length !== 4 || !parts.every((part) => typeof part === "string")) return null;
  const [workspace = "", model = "", type = "", id = ""] = parts as string[];
  return { workspace, model, subject: type === "" ? null : { type, id } };
}
