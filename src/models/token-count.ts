/** Counts the tokens of a request, for Messages API callers whose provider has no token counting endpoint. */
import type { Downstream } from "../http/downstream.ts";
import { writeJson } from "./answer-writer.ts";
import { type ClientCall, estimateInputTokens } from "./client-call.ts";
import { frontFor } from "./providers/fronts/index.ts";
import type { UpstreamCandidate } from "./upstream-request.ts";

/** Typical of prose in European languages. */
const BYTES_PER_TOKEN = 4;

export const isTokenCount = ({ method, path }: ClientCall, { provider, resolved }: UpstreamCandidate): boolean =>
  method === "POST" &&
  path.endsWith("/messages/count_tokens") &&
  frontFor("anthropic-messages", provider, resolved.connection?.config) !== null;

/** An estimate, which its header says: nobody is asked, and nothing is counted. */
export function answerTokenCount(down: Downstream, call: ClientCall, labels: readonly string[]): void {
  writeJson(down, 200, { input_tokens: estimateInputTokens(call, BYTES_PER_TOKEN) }, labels);
}
