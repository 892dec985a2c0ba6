/** Workspaces that `vpc_networks` names and nobody has made: the operator may have misspelt one. */
import type { OperatorNetwork } from "../lib/network/egress/operator-networks.ts";
import type { Store } from "../store/store.ts";

export async function unknownWorkspaces(
  networks: readonly OperatorNetwork[],
  { workspaces }: Pick<Store, "workspaces">,
): Promise<string[]> {
  const names = new Set(networks.flatMap(({ workspace }) => workspace ?? []));
  const unknown: string[] = [];
  for (const name of names) if (!(await workspaces.get(name))) unknown.push(name);
  return unknown;
}
