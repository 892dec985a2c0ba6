/** Batches that pass the gateway: a new one is marked with its maker, a finished one is counted for that maker. */
import { type ClientCall, withBody } from "../client-call.ts";
import type { ModelGatewayDeps } from "../gateway-deps.ts";
import { editMembers } from "../json-members.ts";
import type { ModelTarget } from "../model-records.ts";
import { batchUsage } from "../model-usage.ts";
import { baseUrlOf, candidateOf, type UpstreamCandidate } from "../upstream-request.ts";
import { createsBatch, type MarkSeal, markedMetadata } from "./batch-mark.ts";
import { finishedBatches } from "./batch-usage.ts";

const sealFor = ({ batchKey }: ModelGatewayDeps, candidate: UpstreamCandidate): MarkSeal => ({
  key: batchKey,
  baseUrl: candidate.provider.local ? "" : baseUrlOf(candidate),
});

/** A new batch says who made it: its tokens are counted for that caller when it is finished. */
export function markedBatch(
  call: ClientCall,
  candidate: UpstreamCandidate,
  target: ModelTarget,
  deps: ModelGatewayDeps,
): ClientCall {
  if (!createsBatch(call) || !call.members) return call;
  const metadata = JSON.stringify(markedMetadata(call.member("metadata"), target, sealFor(deps, candidate)));
  return withBody(call, editMembers(call.body, call.members, { metadata }));
}

export async function countBatches(
  body: Buffer,
  shownBy: UpstreamCandidate,
  { workspace, requestId }: ModelTarget,
  deps: ModelGatewayDeps,
): Promise<void> {
  try {
    for (const batch of finishedBatches(body, sealFor(deps, shownBy))) {
      // The mark is read from the provider: it must not lead into another workspace.
      const resolved = batch.workspace === workspace ? await deps.resolveModel(batch.workspace, batch.model) : null;
      if (resolved) deps.usage.record(batchUsage(batch, candidateOf(resolved), deps.priceBook));
    }
  } catch (error) {
    deps.log.error({ error, requestId }, "the usage of a batch was not recorded");
  }
}
