/** Secrets of the connections that a function names, as variables of its environment. */
import type { Resource } from "../../store/resource.ts";
import { secretsOf } from "../integration-connection/access-token.ts";
import { integrationConnection } from "../integration-connection/kind.ts";
import type { Deps } from "../port.ts";

/** Other members of a secret are of no use here, and the platform's own names are not theirs to set. */
const VARIABLE = /^(?!BL_|HOST$|PORT$|PATH$)[A-Za-z_]\w*$/;

/** Where two connections have a member of the same name, the later one counts. */
export async function connectionEnv(
  { kind, workspace }: Resource,
  spec: Record<string, unknown>,
  deps: Deps,
): Promise<Record<string, string>> {
  if (kind !== "function") return {};
  const env: Record<string, string> = {};
  for (const name of (spec.integrationConnections ?? []) as string[]) {
    const place = { workspace, kind: integrationConnection.name, parent: "" };
    const connection = await deps.store.resources.get(place, name);
    for (const [member, value] of Object.entries(connection ? secretsOf(connection, deps) : {}))
      if (VARIABLE.test(member) && value !== undefined) env[member] = value;
  }
  return env;
}
