import type { Resource } from "../../store/resources/resource.ts";
import { HOST } from "../host.ts";
import type { Platform } from "../port.ts";
import { mayServe } from "./usable.ts";

/** Who may no longer use the domain loses the hosts below it; what was served there keeps its other addresses. */
export async function takeBackHosts(domain: Pick<Resource, "name">, deps: Pick<Platform, "store">): Promise<void> {
  for (const { uid, word, workspace } of await deps.store.claims.heldBelow(HOST, domain.name))
    if (!(await mayServe(word, workspace, deps))) await deps.store.claims.releaseWord(uid, HOST, word);
}
