/**
 * The JSON-RPC messages of a request's body. What is checked must be what the server reads, so a body that servers read
 * differently is refused.
 */
import { RPC, RpcError, type RpcRequest } from "../../lib/mcp/wire.ts";
import { isRecord } from "../../lib/untrusted-json.ts";
import { hasOtherSpelling, hasRepeatedMember } from "./repeated-members.ts";

export interface RpcBody {
  messages: RpcMessage[];
  isBatch: boolean;
  text: string;
}

/** A request, a notification (no id), or the answer to a request of the server (no method). */
export type RpcMessage = Partial<RpcRequest> & { result?: unknown; error?: unknown };

/** As much as the bridge to standard streams takes. */
export const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
const BATCH_MAX = 50;

export function rpcBodyOf(body: Buffer): RpcBody {
  const text = body.toString("utf8");
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new RpcError(RPC.parseError, "The body is not JSON.");
  }
  const isBatch = Array.isArray(parsed);
  const messages: unknown[] = Array.isArray(parsed) ? parsed : [parsed];
  if (messages.length === 0 || messages.length > BATCH_MAX || !messages.every(isRecord))
    throw new RpcError(RPC.invalidRequest, `Send a message, or a list of 1 to ${BATCH_MAX} messages.`);
  if (messages.some(hasTwoReadings) || hasRepeatedMember(text))
    throw new RpcError(RPC.invalidRequest, "The body has a member twice, or spelled in another way.");
  return { messages, isBatch, text };
}

const hasTwoReadings = (message: Record<string, unknown>): boolean =>
  hasOtherSpelling(message, ["id", "method", "params"]) ||
  (isRecord(message.params) && hasOtherSpelling(message.params, ["name", "taskId", "_meta"]));
