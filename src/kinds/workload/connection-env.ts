/** Environment variables with the secrets of the connections that a function names. */
import type { Resource } from "../../store/resources/resource.ts";
import type { Revision } from "../../store/resources/revision.ts";
import { serverOf } from "../hub/servers.ts";
import type { StartImage } from "../image/pull.ts";
import { secretsOf } from "../integration-connection/access-token.ts";
import { integrationConnection } from "../integration-connection/kind.ts";
import type { Deps } from "../port.ts";
import { connectionNames, requireSameImage, requireUntouched } from "./connection-rules.ts";
import { runtimeOf } from "./deploy-state.ts";

/** Only valid variable names are set, and none that the platform sets itself. */
const VARIABLE = /^(?!BL_|HOST$|PORT$|PATH$)[A-Za-z_]\w*$/;

/**
 * Sets each secret under its own name and prefixed with its connection's: `TOKEN` of `drive-ada` is also
 * `DRIVE_ADA_TOKEN`. When two connections have a secret of the same name, the plain name holds the later connection's.
 *
 * `started`: the image that was chosen for this start. Its name is not resolved again, because the name may mean another
 * image by now.
 */
export async function connectionEnv(
  resource: Resource,
  { spec, createdAt }: Pick<Revision, "spec" | "createdAt">,
  started: Pick<StartImage, "loaded" | "changedAt">,
  deps: Deps,
): Promise<Record<string, string>> {
  const { kind, workspace } = resource;
  const names = connectionNames(spec);
  if (kind !== "function" || names.length === 0) return {};
  requireUntouched(spec, deps.settings);
  const server = serverOf({ kind, spec }, deps.settings);
  if (!server) requireSameImage(runtimeOf(kind, spec).image ?? started.loaded, started.changedAt, createdAt);
  const plain: Record<string, string> = {};
  const prefixed: Record<string, string> = {};
  for (const name of names) {
    const place = { workspace, kind: integrationConnection.name, parent: "" };
    const connection = await deps.store.resources.get(place, name);
    // A hub server gets only the secrets of its own service.
    if (server && connection?.spec.integration !== server.integration) continue;
    for (const [member, value] of Object.entries(connection ? secretsOf(connection, deps) : {}))
      for (const [env, word] of [
        [plain, member],
        [prefixed, `${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}_${member}`],
      ] as const)
        if (VARIABLE.test(word) && value !== undefined) env[word] = value;
  }
  return { ...prefixed, ...plain };
}
