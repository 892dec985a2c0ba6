/**
 * The list of models at a model's own address: the one that answers there, whatever name a request gives. A client
 * that lets its user choose then offers what it will really get.
 */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream } from "../http/downstream.ts";
import { toIso } from "../lib/time/clock.ts";
import { writeJson } from "./answer-writer.ts";
import type { ClientCall } from "./client-call.ts";
import type { UpstreamCandidate } from "./upstream-request.ts";

const LIST = /^(?:\/v1)?\/models(?:\/([^:]+))?\/?$/;

export const isModelList = (call: ClientCall): boolean => call.method === "GET" && LIST.test(call.path);

export function answerModelList(
  down: Downstream,
  call: ClientCall,
  candidate: UpstreamCandidate,
  labels: string[],
): void {
  const wanted = LIST.exec(call.path)?.[1];
  const names = [candidate.model, candidate.resolved.model.name];
  if (wanted !== undefined && !names.includes(decode(wanted))) {
    throw new GatewayError("WORKLOAD_NOT_FOUND", `This address serves the model ${candidate.model} only.`);
  }
  const anthropic = down.header("anthropic-version") !== undefined;
  const entry = anthropic
    ? { type: "model", id: candidate.model, display_name: candidate.model, created_at: toIso(0) }
    : { id: candidate.model, object: "model", created: 0, owned_by: candidate.provider.name };
  const list = anthropic
    ? { data: [entry], has_more: false, first_id: entry.id, last_id: entry.id }
    : { object: "list", data: [entry] };
  writeJson(down, 200, wanted === undefined ? list : entry, labels);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
