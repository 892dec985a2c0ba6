/** Secrets of the connections that a function names, as variables of its environment. */
import type { Resource } from "../../store/resources/resource.ts";
import type { Revision } from "../../store/resources/revision.ts";
import { serverOf } from "../hub/servers.ts";
import { findImage } from "../image/resolve.ts";
import { secretsOf } from "../integration-connection/access-token.ts";
import { integrationConnection } from "../integration-connection/kind.ts";
import type { Deps } from "../port.ts";
import { connectionNames, requireSameImage, requireUntouched } from "./connection-rules.ts";
import { runtimeOf } from "./deploy-state.ts";

/** Other members of a secret are of no use here, and the platform's own names are not theirs to set. */
const VARIABLE = /^(?!BL_|HOST$|PORT$|PATH$)[A-Za-z_]\w*$/;

/**
 * Each member by its own name and by that of its connection: `TOKEN` of `drive-ada` is also `DRIVE_ADA_TOKEN`. Where two
 * connections have a member of the same name, the plain name is the later one's, and both are there by the longer one.
 */
export async function connectionEnv(
  resource: Resource,
  { spec, createdAt }: Pick<Revision, "spec" | "createdAt">,
  deps: Deps,
): Promise<Record<string, string>> {
  const { kind, workspace } = resource;
  const names = connectionNames(spec);
  if (kind !== "function" || names.length === 0) return {};
  requireUntouched(spec, deps.settings);
  const server = serverOf({ kind, spec }, deps.settings);
  if (!server) await requireDeployedImage(resource, { spec, createdAt }, deps);
  const plain: Record<string, string> = {};
  const prefixed: Record<string, string> = {};
  for (const name of names) {
    const place = { workspace, kind: integrationConnection.name, parent: "" };
    const connection = await deps.store.resources.get(place, name);
    // A server of the hub gets what it is for, and nothing else.
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

async function requireDeployedImage(
  resource: Resource,
  { spec, createdAt }: Pick<Revision, "spec" | "createdAt">,
  deps: Deps,
): Promise<void> {
  const { image } = runtimeOf(resource.kind, spec);
  const found = image ? await findImage(image, resource, deps) : null;
  if (image && found) requireSameImage(image, found.changedAt, createdAt);
}
