import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { integrationConnection } from "./kind.ts";

const model = z.object({ id: z.string(), displayName: z.string().optional(), ownedBy: z.string().optional() });

const about = {
  method: "GET",
  tenancy: "workspace",
  role: "member",
  kind: integrationConnection.name,
} as const;

export const connectionModelList = defineOperation({
  ...about,
  id: "integrationconnectionModelList",
  path: `${integrationConnection.itemPath}/models`,
  summary: "List the models that a connection's key may use, as its provider tells",
  scope: "integrations:list",
  response: z.array(model),
});

export const connectionModelGet = defineOperation({
  ...about,
  id: "integrationconnectionModelGet",
  path: `${integrationConnection.itemPath}/models/{modelId}`,
  summary: "Read one model of a connection's provider",
  scope: "integrations:get",
  response: model,
});

export const connectionEndpoints = defineOperation({
  ...about,
  id: "integrationconnectionEndpointConfigurations",
  path: `${integrationConnection.itemPath}/endpointConfigurations`,
  summary: "List the endpoints that a model of this connection can be called at",
  scope: "integrations:list",
  response: z.record(z.string(), z.looseObject({ method: z.string() })),
});

export const connectionOperations = [connectionModelList, connectionModelGet, connectionEndpoints];
