/** Removes credentials whose right has ended. They stopped working at that moment; this only frees space. */
import type { Right } from "../../contract/caller.ts";
import type { OwnerType } from "../../store/people/keys.ts";
import type { Store } from "../../store/store.ts";
import { ENDED, type EndsDeps, endOf } from "./ends.ts";

export async function forgetEnded(deps: EndsDeps & { store: Store }): Promise<void> {
  const { keys } = deps.store;
  const isOver = async (right: Right | null): Promise<boolean> => (await endOf(right, deps)) === ENDED;
  for (const { workspace, client_id: id, hangs_on } of await keys.hangingAccounts())
    if (await isOver(hangs_on)) await keys.removeServiceAccount(workspace, id);
  for (const { owner_type: type, owner, id, hangs_on } of await keys.hangingKeys())
    if (await isOver(hangs_on)) await keys.removeKey(type as OwnerType, owner, id);
}
