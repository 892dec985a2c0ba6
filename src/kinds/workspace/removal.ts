/**
 * Removes a workspace. It is marked first, which closes it for everybody at once; then its contents are removed page by
 * page, and last its members, its keys and the record. Every step can be repeated, so any server that finds a marked
 * workspace continues, also after a crash.
 */
import type { Store } from "../../store/store.ts";
import type { Deps } from "../port.ts";

type RemovalDeps = Pick<Deps, "store" | "reconciledKinds"> & { logs: Pick<Deps["logs"], "forgetWorkspace"> };

/** Continues the removal of a marked workspace. True when nothing is left, false while workloads are still stopping. */
export async function removeContents(
  name: string,
  actor: string,
  { store, logs, reconciledKinds }: RemovalDeps,
  signal?: AbortSignal,
): Promise<boolean> {
  while (await store.workspaceContents.removeSome(name, reconciledKinds, actor)) if (signal?.aborted) return false;
  if (!(await store.workspaceContents.isEmpty(name))) return false;
  await logs.forgetWorkspace(name);
  await store.workspaces.remove(name);
  return true;
}

/** Like removeContents, but waits for workloads to stop, for as long as the signal allows. */
export async function removeWithin(
  name: string,
  actor: string,
  deps: RemovalDeps,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    const round = new AbortController();
    const changed = nextChange(deps.store, AbortSignal.any([signal, round.signal]));
    if (await removeContents(name, actor, deps, signal)) {
      round.abort();
      return true;
    }
    await changed;
  }
  return false;
}

/** Resumes removals that an ended request or a stopped server left unfinished. */
export async function resumeWorkspaceRemovals(deps: RemovalDeps, signal?: AbortSignal): Promise<void> {
  for (const name of await deps.store.workspaces.listLeavingAcrossAccounts()) {
    if (signal?.aborted) return;
    await removeContents(name, "platform", deps, signal);
  }
}

function nextChange(store: Store, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  const unsubscribe = store.resources.onChange(wake);
  signal.addEventListener("abort", wake);
  return promise.finally(() => {
    signal.removeEventListener("abort", wake);
    unsubscribe();
  });
}
