/**
 * The id of a sandbox at this façade. E2B's ids are unique among all sandboxes of a server, and a part of host names, so
 * the id is the rest of the sandbox's host label: `{name}-{workspace}`. A sandbox without a host label has the id
 * `{name}.{workspace}`.
 */
import { DNS_LABEL_MAX, workloadLabel } from "../../contract/addresses.ts";
import type { GatewayDeps, Workload } from "../../gateway/deps.ts";

export interface Place {
  workspace: string;
  name: string;
}

const PREFIX = "sbx-";
const DOTTED = /^([^.]+)\.([^.]+)$/;

type Resolve = GatewayDeps["resolve"];

export async function sandboxBehind(resolve: Resolve, id: string): Promise<Workload | null> {
  const [, name, workspace] = DOTTED.exec(id) ?? [];
  const found = await resolve(
    name !== undefined && workspace !== undefined
      ? { by: "name", kind: "sandbox", workspace, name }
      : { by: "label", label: `${PREFIX}${id}` },
  );
  return found?.kind === "sandbox" ? found : null;
}

export const idOf = async (resolve: Resolve, place: Place): Promise<string> =>
  idOfFound(await resolve({ by: "name", kind: "sandbox", ...place }), place);

/** `found` is null for a sandbox that is gone. */
export function idOfFound(found: Workload | null, place: Place): string {
  const label = found?.label ?? workloadLabel("sandbox", place);
  if (label === "" || label.length > DNS_LABEL_MAX) return `${place.name}.${place.workspace}`;
  return label.slice(PREFIX.length);
}
