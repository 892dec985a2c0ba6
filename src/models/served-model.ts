/** The model that a request names, as its record is now. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { ModelGatewayDeps } from "./gateway-deps.ts";
import type { ModelTarget, ResolvedModel } from "./model-records.ts";

/** Throws for a model that does not exist or is switched off. */
export async function servedModel(
  { workspace, model }: Pick<ModelTarget, "workspace" | "model">,
  { resolveModel }: Pick<ModelGatewayDeps, "resolveModel">,
): Promise<ResolvedModel> {
  const resolved = await resolveModel(workspace, model);
  if (!resolved) throw new GatewayError("WORKLOAD_NOT_FOUND", `Model ${model} does not exist.`);
  if (resolved.model.spec.enabled === false)
    throw new GatewayError("WORKLOAD_DISABLED", `Model ${model} is switched off.`);
  return resolved;
}
