import { notFound, PlatformError } from "../../contract/errors.ts";
import { toIso } from "../../lib/time/clock.ts";
import { type Implementation, implement, type Platform } from "../port.ts";
import { featureGet, featureList } from "./operations.ts";

export const featureHandlers: readonly Implementation[] = [
  implement(featureList, async (_call, deps) => ({ features: await featuresOf(deps) })),

  implement(featureGet, async ({ params, query, caller }, deps) => {
    if (query.account !== undefined && !caller.accounts.some(({ id }) => id === query.account))
      throw new PlatformError("forbidden", "account: this account is not yours.");
    const featureKey = params.featureKey ?? "";
    const features = await featuresOf(deps);
    const enabled = Object.hasOwn(features, featureKey) ? features[featureKey] : undefined;
    if (enabled === undefined) throw notFound(`Feature '${featureKey}'`);
    const evaluatedAt = toIso(deps.clock.now());
    return { featureKey, enabled, variant: enabled ? "on" : "off", evaluatedAt, payload: {} };
  }),
];

/** Feature names that clients ask for, derived from the server's configuration and its machine. */
async function featuresOf({ settings, store, here }: Platform): Promise<Record<string, boolean>> {
  return {
    "egress-addresses": settings.egressPool.length > 0,
    "image-builds": (await here.driver.capability("building")) !== null,
    quotas: Object.keys(settings.quotas).length > 0,
    "several-servers": store.database.dialect === "postgres",
    "workload-hosts": settings.domain !== null,
    ...Object.fromEntries(settings.features.map((name) => [name, true])),
  };
}
