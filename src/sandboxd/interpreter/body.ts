/** The JSON body of a request to the interpreter. */
import type { IncomingMessage } from "node:http";
import { ApiError } from "../http/api-error.ts";

const BODY_BYTES_MAX = 16 * 1024 * 1024;

export async function readBody(req: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > BODY_BYTES_MAX) throw new ApiError(413, `A request has at most ${BODY_BYTES_MAX} bytes.`);
    chunks.push(chunk);
  }
  if (bytes === 0) return {};
  const parsed: unknown = parsedOr(Buffer.concat(chunks).toString("utf8"));
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new ApiError(400, "The body must be a JSON object.");
  return parsed as Record<string, unknown>;
}

function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Absent, null and an empty text are the same. */
export function textOf(body: Record<string, unknown>, name: string): string | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined || (value === "" && name !== "code")) return undefined;
  if (typeof value !== "string") throw new ApiError(400, `"${name}" must be a string.`);
  return value;
}
