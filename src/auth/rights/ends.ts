/**
 * When a right ends. A credential depends on the right that made it, that right may depend on another, and so on up to
 * an independent right. The earliest end of the chain applies. It is looked up and never copied, so that revoking a
 * right ends everything that depends on it.
 */
import type { Right } from "../../contract/caller.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { grantHash } from "../../store/people/oauth-records.ts";
import type { Store } from "../../store/store.ts";
import { isRegistered } from "../oauth/clients.ts";

/** The end of a right that has ended or is unknown. */
export const ENDED = 0;
/** The end of a right that never ends. */
export const ENDLESS = Number.POSITIVE_INFINITY;

export interface EndsDeps {
  store: Pick<Store, "keys" | "oauth" | "people">;
  clock: Clock;
}

export const grantRight = (grantId: string): Right => `grant:${grantHash(grantId)}`;

/** Returns milliseconds since the epoch, ENDED or ENDLESS. */
export async function endOf(right: Right | null, deps: EndsDeps): Promise<number> {
  if (right === null) return ENDLESS;
  const at = right.indexOf(":");
  const end = await ENDS[right.slice(0, at) as Sort](right.slice(at + 1), deps);
  return end > deps.clock.now() ? end : ENDED;
}

/** Whether a consent itself depends on another right. */
export const dependsOn = async (grant: Right, { store }: Pick<EndsDeps, "store">): Promise<boolean> =>
  (await store.oauth.consent(grant.slice(grant.indexOf(":") + 1)))?.hangsOn != null;

/** The end as a JSON member or column: absent when the right never ends. */
export const finite = (end: number): { endsAt?: number } => (end === ENDLESS ? {} : { endsAt: end });

type Sort = "key" | "grant" | "account";

const ENDS: Record<Sort, (id: string, deps: EndsDeps) => Promise<number>> = {
  async key(id, deps) {
    const key = await deps.store.keys.getKey(id);
    if (!key) return ENDED;
    const owner =
      key.owner_type === "service_account"
        ? await endOf(`account:${key.owner}`, deps)
        : (await deps.store.people.getUser(key.owner))
          ? ENDLESS
          : ENDED;
    return Math.min(key.expires_at ?? ENDLESS, owner, await endOf(key.hangs_on, deps));
  },

  async grant(hash, deps) {
    const { store } = deps;
    const consent = await store.oauth.consent(hash);
    if (!consent) return ENDED;
    return Math.min(
      consent.endsAt,
      await endOf(consent.hangsOn, deps),
      isRegistered(consent.client) ? await store.oauth.clientEnd(consent.client) : ENDLESS,
    );
  },

  async account(clientId, deps) {
    const account = await deps.store.keys.findServiceAccountAcrossWorkspaces(clientId);
    return account ? endOf(account.hangs_on, deps) : ENDED;
  },
};
