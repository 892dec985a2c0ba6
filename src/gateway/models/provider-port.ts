/** What the management API asks about model providers. */
import { PlatformError } from "../../contract/errors.ts";
import type { Resource } from "../../store/resource.ts";
import type { Store } from "../../store/store.ts";
import {
  describeIntegration,
  type IntegrationDescription,
  listProviderModels,
  type ProviderModel,
} from "./connections.ts";
import type { ModelGateway } from "./model-gateway.ts";
import { connectionOf } from "./stored-models.ts";

export interface ProviderPort {
  describe(integration: string): IntegrationDescription | null;
  listModels(connection: Resource): Promise<ProviderModel[]>;
}

/** `models` is asked late, because the API is made before the gateway is. */
export const createProviderPort = (store: Store, models: () => ModelGateway): ProviderPort => ({
  describe(integration) {
    try {
      return describeIntegration(integration);
    } catch (error) {
      if (error instanceof PlatformError && error.code === "not_found") return null;
      throw error;
    }
  },
  listModels: (connection) => listProviderModels(connectionOf(connection, store), models().upstreams),
});
