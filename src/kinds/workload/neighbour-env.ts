/**
 * Internal addresses of the agents and functions of a workspace, and the names of those that the code declares to call.
 */
import { INTERNAL_DOMAIN, INTERNAL_KINDS, internalHash, internalName } from "../../contract/internal-names.ts";
import { parseListQuery } from "../../contract/list-query.ts";
import { PLATFORM_DOOR_PORT } from "../../node/workload.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";

const HOST = `${INTERNAL_DOMAIN}:${PLATFORM_DOOR_PORT}`;
/** Selects every neighbour, up to ALL_MAX. */
const ALL = "all";
const ALL_MAX = 200;

export async function neighbourEnv(
  { workspace }: Resource,
  spec: Record<string, unknown>,
  { store }: Pick<Platform, "store">,
): Promise<Record<string, string>> {
  const env: Record<string, string> = {
    BL_RUN_INTERNAL_HOST: HOST,
    BL_RUN_INTERNAL_HOSTNAME: HOST,
    BL_RUN_INTERNAL_PROTOCOL: "http",
  };
  for (const kind of INTERNAL_KINDS) {
    const wanted = spec[`${kind}s`];
    const named = Array.isArray(wanted) ? wanted.filter((one) => typeof one === "string") : [];
    const names = named.includes(ALL) ? await everyName(workspace, kind, store) : named;
    const held = await store.heldWords.wordsOf("internal", workspace, kind, names);
    for (const name of names)
      env[variable(kind, name)] = internalName(held.get(name) ?? internalHash(workspace, kind, name));
  }
  return env;
}

async function everyName(workspace: string, kind: string, store: Platform["store"]): Promise<string[]> {
  const all = { limitDefault: ALL_MAX, limitMax: ALL_MAX };
  const { items } = await store.resources.list({ workspace, kind, parent: "" }, parseListQuery({}, all));
  return items.map(({ name }) => name);
}

const variable = (kind: string, name: string): string =>
  `BL_${kind}_${name}_SERVICE_NAME`.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");
