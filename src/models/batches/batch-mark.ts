/**
 * Who made a batch. A provider works on a batch for hours and tells its tokens only to whoever looks at it later, so the
 * gateway writes the caller into the batch's own metadata and reads it there: nothing has to be kept here, and batches
 * that were not made through the gateway are not counted. The mark is signed, for the provider at which it was made: who
 * can write metadata, or runs a provider, could bill others otherwise.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { isRecord } from "../../lib/untrusted-json.ts";
import type { Subject } from "../model-records.ts";
import { isAt } from "../plain-path.ts";

export interface BatchMark {
  workspace: string;
  model: string;
  subject: Subject | null;
}

/** What a mark is signed with. */
export interface MarkSeal {
  key: Buffer;
  /** Address of the provider that has the batch. */
  baseUrl: string;
}

/** The key in the metadata of a batch. */
const MARK = "gateway_caller";

/** Batches of messages have no metadata; see the dialect `anthropicBatches`. */
const CREATES = /(?<!\/messages)\/batches\/?$/i;
const LOOKS = /(?<!\/messages)\/batches(?:\/[^/]+(?:\/cancel)?)?\/?$/i;

interface Call {
  method: string;
  /** Without the query. */
  path: string;
}

export const createsBatch = ({ method, path }: Call): boolean => method === "POST" && isAt(path, CREATES);

/** True when the answer is a batch or a list of batches. */
export const looksAtBatches = ({ path }: Pick<Call, "path">): boolean => isAt(path, LOOKS);

/** The metadata of a new batch. What the caller wrote under the same key is replaced. */
export function markedMetadata(
  metadata: unknown,
  { workspace, model, subject }: BatchMark,
  seal: MarkSeal,
): Record<string, unknown> {
  const parts = [workspace, model, subject?.type ?? "", subject?.id ?? ""];
  return { ...(isRecord(metadata) ? metadata : {}), [MARK]: JSON.stringify([...parts, signatureOf(parts, seal)]) };
}

/** Null for a batch that was not made through the gateway, at this provider. */
export function readMark(metadata: unknown, seal: MarkSeal): BatchMark | null {
  const text = isRecord(metadata) ? metadata[MARK] : undefined;
  if (typeof text !== "string") return null;
  let parts: unknown;
  try {
    parts = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(parts) || parts.length !== 5 || !parts.every((part) => typeof part === "string")) return null;
  const [workspace = "", model = "", type = "", id = "", signature = ""] = parts as string[];
  if (!isSame(signature, signatureOf([workspace, model, type, id], seal))) return null;
  return { workspace, model, subject: type === "" ? null : { type, id } };
}

const signatureOf = (parts: readonly string[], { key, baseUrl }: MarkSeal): string =>
  createHmac("sha256", key)
    .update(JSON.stringify([...parts, baseUrl]))
    .digest("base64url");

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
