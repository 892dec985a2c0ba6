import { notFound } from "../../contract/errors.ts";
import { type Implementation, implement } from "../port.ts";
import { findIntegration } from "./declarations.ts";
import { integrationGet } from "./operations.ts";

export const integrationHandlers: readonly Implementation[] = [
  implement(integrationGet, async ({ params }) => {
    const given = params.integrationName ?? "";
    const found = findIntegration(given);
    if (!found) throw notFound(`integration '${given.slice(0, 64)}'`);
    const { name, title, baseUrl, tokenUrl, endpoints = {}, headers = {}, secrets, config = [] } = found;
    return {
      name,
      additionalInfos: { title, ...(baseUrl ? { baseUrl } : {}), ...(tokenUrl ? { tokenUrl } : {}) },
      endpoints: { ...endpoints },
      headers: { ...headers },
      params: { ...found.params },
      secrets: [...secrets],
      config: [...config],
    };
  }),
];
