/**
 * The JSON-RPC messages of a request's body. The body is written anew, because servers read a repeated member
 * differently: what is checked must be what the server gets. Numbers keep their digits.
 */
import { RPC, RpcError, type RpcRequest } from "../../lib/mcp/wire.ts";
import { isRecord } from "../../lib/untrusted-json.ts";

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
  return { messages, isBatch, text: rewritten(text) };
}

/** TypeScript does not know the members of JSON that keep the digits of a number. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

export const rewritten = (text: string): string =>
  JSON.stringify(
    JSON.parse(text, (_key, value: unknown, context?: { source?: string }) =>
      typeof value === "number" && context?.source !== undefined ? rawJSON(context.source) : value,
    ),
  );
