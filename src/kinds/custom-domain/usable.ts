/** Which hosts a workspace may serve: a verified domain that it owns or that is lent to it, and every name below. */
import { wholeAccount } from "../../store/resources/shares.ts";
import type { Platform } from "../port.ts";

type UsableDeps = Pick<Platform, "store">;

export async function mayServe(host: string, workspace: string, { store }: UsableDeps): Promise<boolean> {
  const labels = host.split(".");
  const above = labels.slice(0, -1).map((_, index) => labels.slice(index).join("."));
  for (const name of above) {
    const own = await store.resources.get({ workspace, kind: "customdomain", parent: "" }, name);
    if (own?.spec.status === "verified") return true;
  }
  const accountId = (await store.workspaces.get(workspace))?.accountId ?? "";
  const lent = await store.shares.resourcesFor([workspace, wholeAccount(accountId)], "customdomain", null);
  return lent.some(({ name, spec }) => spec.status === "verified" && above.includes(name));
}
