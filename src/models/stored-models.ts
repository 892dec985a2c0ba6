/** Models with their connections and policies, read from the store and cached until they change. */

import { GatewayError } from "../contract/gateway-errors.ts";
import { modelBalance } from "../contract/model-balance.ts";
import { modelCache } from "../contract/model-cache.ts";
import { modelGuardrails } from "../contract/model-guardrails.ts";
import { modelPrices } from "../contract/model-prices.ts";
import { restoreSecrets } from "../contract/secret-fields.ts";
import { kindNamed } from "../kinds/index.ts";
import type { Running } from "../lib/lifecycle.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import type { ModelGatewayDeps } from "./gateway-deps.ts";
import type { PolicyRecord, ProviderConnection, ResolvedModel } from "./model-records.ts";

/** Bounds memory; a full cache starts over. */
const ENTRIES_MAX = 5000;
const CONNECTION = "integrationconnection";
const WATCHED = new Set(["model", CONNECTION, "policy"]);

export interface StoredModels extends Running {
  resolveModel: ModelGatewayDeps["resolveModel"];
}

export function createStoredModels(store: Store): StoredModels {
  const known = new Map<string, ResolvedModel>();
  // Counts changes: what was read before one must not be kept after it.
  let era = 0;
  const unsubscribe = store.database.onChange(({ topic, key }) => {
    if (topic !== "resync" && !(topic === "resource" && WATCHED.has(key.slice(0, key.indexOf("/"))))) return;
    era += 1;
    known.clear();
  });
  const named = async (workspace: string, kind: string, names: unknown): Promise<Resource[]> => {
    const found = await Promise.all(
      ((names ?? []) as string[]).map((name) => store.resources.get({ workspace, kind, parent: "" }, name)),
    );
    return found.filter((resource) => resource !== null);
  };

  async function load(workspace: string, name: string): Promise<ResolvedModel | null> {
    const resource = await store.resources.get({ workspace, kind: "model", parent: "" }, name);
    if (!resource || resource.deletedAt !== null) return null;
    const { spec } = resource;
    const [home, [connection], policies] = await Promise.all([
      store.workspaces.get(workspace),
      named(workspace, CONNECTION, spec.integrationConnections),
      named(workspace, "policy", spec.policies),
    ]);
    if (!home) return null;
    const prices = modelPrices.safeParse(spec.prices);
    const cache = modelCache.safeParse(spec.cache);
    const { guardrails: rules } = withSecrets(resource, store);
    const guardrails = modelGuardrails.safeParse(rules ?? {});
    // Rules that cannot be read must not be rules that do not hold.
    if (!guardrails.success)
      throw new GatewayError(
        "PROVIDER_NOT_CONFIGURED",
        `spec.guardrails of model ${name} cannot be read: write it again.`,
      );
    const balance = modelBalance.safeParse(spec.balance);
    return {
      model: { name, spec },
      ledger: { accountId: home.accountId, modelUid: resource.uid },
      connection: connection ? connectionOf(connection, store) : null,
      policies: policies.map(policyOf),
      ...(prices.success ? { prices: prices.data } : {}),
      ...(cache.success ? { cache: cache.data } : {}),
      ...(rules ? { guardrails: [guardrails.data] } : {}),
      ...(balance.success ? { balance: balance.data } : {}),
    };
  }

  return {
    async resolveModel(workspace, name) {
      const key = `${workspace}/${name}`;
      const cached = known.get(key);
      if (cached) return cached;
      const readIn = era;
      const resolved = await load(workspace, name);
      if (known.size >= ENTRIES_MAX) known.clear();
      if (resolved && readIn === era) known.set(key, resolved);
      return resolved;
    },
    async stop() {
      unsubscribe();
      known.clear();
    },
  };
}

/** The spec with its secrets in the clear. */
function withSecrets(resource: Resource, store: Store): Resource["spec"] {
  const { spec } = structuredClone({ spec: resource.spec });
  restoreSecrets({ spec }, kindNamed(resource.kind).secrets, store.resources.secretsOf(resource));
  return spec;
}

interface StoredConnection {
  integration?: unknown;
  config?: Record<string, string>;
  secret?: Record<string, string>;
}

export function connectionOf(resource: Resource, store: Store): ProviderConnection {
  const { integration, config = {}, secret = {} }: StoredConnection = withSecrets(resource, store);
  return {
    name: resource.name,
    integration: String(integration),
    config,
    secret,
  };
}

export const policyOf = ({ name, spec }: Resource): PolicyRecord => ({ name, ...(spec as Omit<PolicyRecord, "name">) });
