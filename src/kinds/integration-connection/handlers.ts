import { notFound, PlatformError } from "../../contract/errors.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { find } from "../place.ts";
import { type Call, type Implementation, implement, type Platform } from "../port.ts";
import { integrationConnection } from "./kind.ts";
import { connectionEndpoints, connectionModelGet, connectionModelList } from "./operations.ts";

export const connectionHandlers: readonly Implementation[] = [
  implement(connectionModelList, async (call, deps) => deps.providers.listModels(await modelConnection(call, deps))),

  implement(connectionModelGet, async (call, deps) => {
    const id = call.params.modelId ?? "";
    const models = await deps.providers.listModels(await modelConnection(call, deps));
    const model = models.find((candidate) => candidate.id === id);
    if (!model) throw notFound(`model '${id.slice(0, 128)}' of this connection`);
    return model;
  }),

  implement(connectionEndpoints, async (call, deps) => {
    const { spec } = await modelConnection(call, deps);
    return deps.providers.describe(String(spec.integration))?.endpoints ?? {};
  }),
];

async function modelConnection(
  call: Pick<Call, "params" | "workspace" | "operation" | "role">,
  deps: Platform,
): Promise<Resource> {
  const { resource } = await find(integrationConnection, call, deps);
  if (deps.providers.describe(String(resource.spec.integration))) return resource;
  throw new PlatformError(
    "bad_request",
    `Connection '${resource.name}' is to '${resource.spec.integration}', which is not a model provider.`,
  );
}
