/** Secrets of the connections that a function names, as variables of its environment. */
import type { Resource } from "../../store/resource.ts";
import { secretsOf } from "../integration-connection/access-token.ts";
import { integrationConnection } from "../integration-connection/kind.ts";
import type { Deps } from "../port.ts";

/** Other members of a secret are of no use here, and the platform's own names are not theirs to set. */
const VARIABLE = /^(?!BL_|HOST$|PORT$|PATH$)[A-Za-z_]\w*$/;

/**
 * Each member by its own name and by that of its connection: `TOKEN` of `drive-ada` is also `DRIVE_ADA_TOKEN`. Where two
 * connections have a member of the same name, the plain name is the later one's, and both are there by the longer one.
 */
export async function connectionEnv(
  { kind, workspace }: Resource,
  spec: Record<string, unknown>,
  deps: Deps,
): Promise<Record<string, string>> {
  if (kind !== "function") return {};
  const plain: Record<string, string> = {};
  const prefixed: Record<string, string> = {};
  for (const name of (spec.integrationConnections ?? []) as string[]) {
    const place = { workspace, kind: integrationConnection.name, parent: "" };
    const connection = await deps.store.resources.get(place, name);
    for (const [member, value] of Object.entries(connection ? secretsOf(connection, deps) : {}))
      for (const [env, word] of [
        [plain, member],
        [prefixed, `${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}_${member}`],
      ] as const)
        if (VARIABLE.test(word) && value !== undefined) env[word] = value;
  }
  return { ...prefixed, ...plain };
}
