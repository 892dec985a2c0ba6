/** The façades that are switched on. */
import type { FacadeName } from "../contract/facades.ts";
import { createE2bFacade, type E2bFacadeDeps } from "../facades/e2b/e2b-facade.ts";
import { createCatalogue } from "../facades/models/model-catalogue.ts";
import { createModelFacade } from "../facades/models/model-facade.ts";
import type { GatewayDeps } from "../gateway/deps.ts";
import type { Principals } from "../gateway/principals.ts";
import type { ModelGateway } from "../models/model-gateway.ts";
import type { Store } from "../store/store.ts";

interface FacadeParts extends Principals, Omit<E2bFacadeDeps, "labelsOf"> {
  store: Store;
  models: ModelGateway;
}

export function facadesOf(names: readonly FacadeName[], parts: FacadeParts): NonNullable<GatewayDeps["facades"]> {
  const deps = { ...parts, catalogue: createCatalogue(parts) };
  const labelsOf: E2bFacadeDeps["labelsOf"] = async ({ workspace, name }) =>
    (await parts.store.resources.get({ workspace, kind: "sandbox", parent: "" }, name))?.metadata.labels ?? {};
  return Object.fromEntries(
    names.map((name) => [
      name,
      name === "e2b" ? createE2bFacade({ ...parts, labelsOf }) : createModelFacade(deps, name),
    ]),
  );
}
