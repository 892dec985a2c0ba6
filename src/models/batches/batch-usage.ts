/** What finished batches used, read from the answers in which a provider shows them. */
import { hash } from "node:crypto";
import { at, isRecord, itemsOf } from "../../lib/untrusted-json.ts";
import type { BodyPipe } from "../body-pipes.ts";
import { openaiChat } from "../providers/openai/dialects.ts";
import type { TokenUsage } from "../providers/token-usage.ts";
import { type BatchMark, type MarkSeal, readMark } from "./batch-mark.ts";

export interface FinishedBatch extends BatchMark {
  /** The same for the same batch, so that the ledger counts it once however often somebody looks. */
  requestId: string;
  finishedAtMs: number;
  usage: TokenUsage;
}

/** A list of batches is far shorter; a longer answer passes without being read. */
const READ_MAX_BYTES = 4 * 1024 * 1024;
const SECOND_MS = 1000;

/** Passes an answer on as it comes, and tells of it when it is complete. */
export function batchPipe(inner: BodyPipe, complete: (body: Buffer) => void): BodyPipe {
  let kept: Buffer[] = [];
  let bytes = 0;
  return {
    chunk(data) {
      bytes += data.length;
      if (bytes <= READ_MAX_BYTES) kept.push(data);
      else kept = [];
      return inner.chunk(data);
    },
    end() {
      if (bytes <= READ_MAX_BYTES) complete(Buffer.concat(kept));
      return inner.end();
    },
    get broke() {
      return inner.broke;
    },
    fail: (failure) => inner.fail(failure),
  };
}

export function finishedBatches(body: Buffer, seal: MarkSeal): FinishedBatch[] {
  let json: unknown;
  try {
    json = JSON.parse(body.toString("utf8"));
  } catch {
    return [];
  }
  const all = at(json, "object") === "list" ? itemsOf(at(json, "data")) : [json];
  return all.flatMap((batch) => {
    const made = finishedBatch(batch, seal);
    return made ? [made] : [];
  });
}

/** In the order in which a batch may end; work that was done before is paid for in each case. */
const ENDS = ["completed_at", "cancelled_at", "expired_at", "failed_at"];

function finishedBatch(batch: unknown, seal: MarkSeal): FinishedBatch | null {
  if (!isRecord(batch) || typeof batch.id !== "string") return null;
  const mark = readMark(batch.metadata, seal);
  const usage = openaiChat.readUsage(batch.usage);
  const ended = ENDS.map((name) => batch[name]).find((value) => typeof value === "number");
  if (!mark || !usage || typeof ended !== "number") return null;
  const print = hash("sha256", JSON.stringify([mark.workspace, mark.model, batch.id]), "base64url");
  return { ...mark, requestId: `batch-${print}`, finishedAtMs: ended * SECOND_MS, usage };
}
