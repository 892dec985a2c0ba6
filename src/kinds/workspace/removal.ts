/**
 * How a workspace goes away. It is marked first, which closes it for everybody at once; then its contents are removed
 * page by page, and last its members, keys and the record itself. Every step can be repeated, so whoever finds a
 * marked workspace, in this process or after a crash in the next, simply goes on.
 */
import type { Deps } from "../port.ts";

type RemovalDeps = Pick<Deps, "store" | "reconciledKinds">;

/** Goes on with the removal of a marked workspace for at most so many pages; true when nothing of it is left. */
export async function removeContents(
  name: string,
  actor: string,
  { store, reconciledKinds }: RemovalDeps,
  pagesMax = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  for (let page = 0; page < pagesMax; page += 1) {
    if (await store.workspaceContents.removeSome(name, reconciledKinds, actor)) continue;
    if (!(await store.workspaceContents.isEmpty(name))) return false;
    await store.workspaces.remove(name);
    return true;
  }
  return false;
}

/** Takes up what an earlier request, or an earlier life of the server, has left to do. */
export async function resumeWorkspaceRemovals(deps: RemovalDeps, signal?: AbortSignal): Promise<void> {
  for (const name of await deps.store.workspaces.listLeavingAcrossAccounts()) {
    if (signal?.aborted) return;
    await removeContents(name, "platform", deps);
  }
}
