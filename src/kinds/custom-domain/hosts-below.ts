import type { Resource } from "../../store/resources/resource.ts";
import { HOST } from "../host.ts";
import type { Platform } from "../port.ts";
import { mayServe } from "./usable.ts";

/**
 * Takes the hosts below a domain from workspaces that may no longer use it. Their resources keep their other addresses.
 */
export async function takeBackHosts(domain: Pick<Resource, "name">, deps: Pick<Platform, "store">): Promise<void> {
  for (const { uid, word, workspace } of await deps.store.claims.heldBelow(HOST, domain.name))
    if (!(await mayServe(word, workspace, deps))) await deps.store.claims.releaseWord(uid, HOST, word);
}
