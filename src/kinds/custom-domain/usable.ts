/**
 * Which hosts a workspace may serve: those at or below a verified domain that it owns or that is lent to it, up to the
 * next domain that is verified for somebody else.
 */
import type { Resource } from "../../store/resources/resource.ts";
import { wholeAccount } from "../../store/resources/shares.ts";
import type { Platform } from "../port.ts";

/** Claims on the names of verified domains: each is verified for one workspace at a time. */
export const VERIFIED_POOL = "custom-domain";

type UsableDeps = Pick<Platform, "store">;

export const isVerified = ({ spec }: Pick<Resource, "spec">): boolean => spec.status === "verified";

/** `counts` says which domains of the workspace count; default: those that are verified now. */
export async function mayServe(
  host: string,
  workspace: string,
  { store }: UsableDeps,
  counts: (domain: Resource) => boolean = isVerified,
): Promise<boolean> {
  const labels = host.split(".");
  // The nearest name first.
  const above = labels.slice(0, -1).map((_, index) => labels.slice(index).join("."));
  const holders = await store.claims.holdersOf(VERIFIED_POOL, above);
  const accountId = (await store.workspaces.get(workspace))?.accountId ?? "";
  const lent = await store.shares.resourcesFor([workspace, wholeAccount(accountId)], "customdomain", null);
  for (const name of above) {
    const own = await store.resources.get({ workspace, kind: "customdomain", parent: "" }, name);
    if ([...(own ? [own] : []), ...lent.filter((domain) => domain.name === name)].some(counts)) return true;
    if (holders.has(name)) return false;
  }
  return false;
}
