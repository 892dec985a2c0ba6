/** What the management API asks about model providers. */
import { PlatformError } from "../contract/errors.ts";
import { GatewayError } from "../contract/gateway-errors.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import { type BudgetLeft, budgetsLeft } from "./budget-report.ts";
import {
  describeIntegration,
  type IntegrationDescription,
  listProviderModels,
  type ProviderModel,
} from "./connections.ts";
import type { ModelGateway } from "./model-gateway.ts";
import type { ModelRecord, Subject } from "./model-records.ts";
import { providerOf } from "./providers/catalogue.ts";
import { connectionOf, policyOf } from "./stored-models.ts";
import { secretOf } from "./upstream-headers.ts";
import { baseUrlOf } from "./upstream-request.ts";

export interface ProviderPort {
  describe(integration: string): IntegrationDescription | null;
  problemOf(model: Pick<Resource, "name" | "spec">, connection: Resource | null): string | null;
  listModels(connection: Resource): Promise<ProviderModel[]>;
  budgetsLeft(workspace: string, policies: readonly Resource[], subject: Subject): Promise<BudgetLeft[]>;
}

/** `models` is asked late, because the API is made before the gateway is. */
export const createProviderPort = (store: Store, clock: Clock, models: () => ModelGateway): ProviderPort => ({
  describe(integration) {
    try {
      return describeIntegration(integration);
    } catch (error) {
      if (error instanceof PlatformError && error.code === "not_found") return null;
      throw error;
    }
  },
  problemOf(model, connection) {
    const held = connection && connectionOf(connection, store);
    const spec: ModelRecord["spec"] = model.spec;
    const provider = providerOf(spec.runtime?.type, held?.integration);
    if (provider.local) return null;
    try {
      baseUrlOf({ provider, resolved: { model: { name: model.name, spec }, connection: held } });
      secretOf(provider, held);
      return null;
    } catch (error) {
      if (error instanceof GatewayError) return error.message;
      throw error;
    }
  },
  listModels: (connection) => listProviderModels(connectionOf(connection, store), models().upstreams),
  budgetsLeft: (workspace, policies, subject) =>
    budgetsLeft({ records: store.records, clock }, workspace, policies.map(policyOf), subject),
});
