import type { Resource } from "../../store/resources/resource.ts";
import { HOST } from "../host.ts";
import type { Platform } from "../port.ts";
import { isVerified, mayServe } from "./usable.ts";

/**
 * Takes the hosts below a domain from workspaces that may no longer use it. Their resources keep their other addresses.
 * A workspace whose own domain below this one has lost its verification keeps the hosts: they lead nowhere meanwhile.
 */
export async function takeBackHosts(domain: Pick<Resource, "name">, deps: Pick<Platform, "store">): Promise<void> {
  const counts = (one: Resource): boolean => isVerified(one) || one.name.endsWith(`.${domain.name}`);
  for (const { uid, word, workspace } of await deps.store.claims.heldBelow(HOST, domain.name))
    if (!(await mayServe(word, workspace, deps, counts))) await deps.store.claims.releaseWord(uid, HOST, word);
}
