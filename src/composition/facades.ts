/** The façades that are switched on. */
import type { FacadeName } from "../contract/facades.ts";
import { createCatalogue } from "../facades/models/model-catalogue.ts";
import { createModelFacade } from "../facades/models/model-facade.ts";
import type { GatewayDeps } from "../gateway/deps.ts";
import type { Principals } from "../gateway/principals.ts";
import type { ModelGateway } from "../models/model-gateway.ts";
import type { Store } from "../store/store.ts";

interface FacadeParts extends Principals {
  store: Store;
  models: ModelGateway;
  brand: string;
}

export function facadesOf(names: readonly FacadeName[], parts: FacadeParts): NonNullable<GatewayDeps["facades"]> {
  const deps = { ...parts, catalogue: createCatalogue(parts) };
  return Object.fromEntries(names.map((name) => [name, createModelFacade(deps, name)]));
}
