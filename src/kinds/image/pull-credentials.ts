/**
 * Credentials that a workspace has for registries: those that came with the image or the workload, then those of its
 * connections to the integration `registry`.
 */
import { PlatformError } from "../../contract/errors.ts";
import { parseListQuery } from "../../contract/list-query.ts";
import {
  type FindCredentials,
  firstOf,
  NO_CREDENTIALS,
  parseDockerConfig,
  registryIn,
} from "../../registry/credentials.ts";
import { ofKind } from "../../store/resources/resource.ts";
import { secretsOf } from "../integration-connection/access-token.ts";
import { integrationConnection } from "../integration-connection/kind.ts";
import type { Platform } from "../port.ts";

const INTEGRATION = "registry";
/** Connections of one workspace that are looked at. */
const CONNECTIONS_MAX = 1000;

/** `dockerConfig`: the content of a `config.json`, as text or as an object. */
export async function pullCredentials(
  workspace: string,
  dockerConfig: unknown,
  deps: Pick<Platform, "store">,
): Promise<FindCredentials> {
  return firstOf(fromConfig(dockerConfig), await fromConnections(workspace, deps));
}

function fromConfig(dockerConfig: unknown): FindCredentials {
  if (dockerConfig === undefined || dockerConfig === null || dockerConfig === "") return NO_CREDENTIALS;
  const text = typeof dockerConfig === "string" ? dockerConfig : JSON.stringify(dockerConfig);
  try {
    return parseDockerConfig(text);
  } catch {
    throw new PlatformError("unprocessable", "dockerConfig is not the content of a Docker config.json.");
  }
}

async function fromConnections(workspace: string, deps: Pick<Platform, "store">): Promise<FindCredentials> {
  const all = { limitDefault: CONNECTIONS_MAX, limitMax: CONNECTIONS_MAX };
  const place = { workspace, kind: integrationConnection.name, parent: "" };
  const { items } = await deps.store.resources.list(place, parseListQuery({}, all));
  const known = items
    .map((each) => ofKind(integrationConnection, each))
    .filter(({ spec, deletedAt }) => spec.integration === INTEGRATION && deletedAt === null);
  return (registry) => {
    for (const connection of known) {
      const { registry: host, baseUrl } = connection.spec.config ?? {};
      const { USERNAME: username, PASSWORD: password } = secretsOf(connection, deps);
      if (registryIn(host ?? baseUrl ?? "") === registry && username && password) return { username, password };
    }
    return null;
  };
}
