/** Counts the tokens of a request, for Messages API callers whose provider has no token counting endpoint. */
import type { Downstream } from "../http/downstream.ts";
import { writeJson } from "./answer-writer.ts";
import { asChat, type ClientCall, estimateInputTokens } from "./client-call.ts";
import type { Front } from "./providers/fronts/front.ts";
import { frontFor } from "./providers/fronts/index.ts";
import type { UpstreamCandidate } from "./upstream-request.ts";

/** Typical of prose in European languages. */
const BYTES_PER_TOKEN = 4;

export const isTokenCount = (call: ClientCall, candidate: UpstreamCandidate): boolean =>
  call.method === "POST" && call.path.endsWith("/messages/count_tokens") && messagesFrontOf(candidate) !== null;

export interface TokenCountHeaders {
  labels: readonly string[];
  /** Says that the count is an estimate. */
  estimated: readonly string[];
}

/** Asks nobody and records no usage. A provider that counts by itself is exact; every other count is an estimate. */
export function answerTokenCount(
  down: Downstream,
  call: ClientCall,
  candidate: UpstreamCandidate,
  { labels, estimated }: TokenCountHeaders,
): void {
  const front = messagesFrontOf(candidate);
  const { countTokens } = candidate.provider;
  if (front && countTokens) {
    writeJson(down, 200, { input_tokens: countTokens(asChat(call, front).chat) }, labels);
    return;
  }
  writeJson(down, 200, { input_tokens: estimateInputTokens(call, BYTES_PER_TOKEN) }, [...labels, ...estimated]);
}

const messagesFrontOf = ({ provider, resolved }: UpstreamCandidate): Front | null =>
  frontFor("anthropic-messages", provider, resolved.connection?.config);
