import { notFound } from "../../contract/errors.ts";
import { type Implementation, implement } from "../port.ts";
import { findIntegration } from "./declarations.ts";
import { integrationGet } from "./operations.ts";

export const integrationHandlers: readonly Implementation[] = [
  implement(integrationGet, async ({ params }, { providers }) => {
    const given = params.integrationName ?? "";
    const provider = providers.describe(given);
    if (provider) return provider;
    const found = findIntegration(given);
    if (!found) throw notFound(`integration '${given.slice(0, 64)}'`);
    const { name, title, tokenUrl, headers = {}, secrets, config = [] } = found;
    return {
      name,
      additionalInfos: { title, ...(tokenUrl ? { tokenUrl } : {}) },
      endpoints: {},
      headers: { ...headers },
      params: {},
      secrets: [...secrets],
      needsSecret: true,
      config: [...config],
    };
  }),
];
