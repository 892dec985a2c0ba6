/** Connects oidc-provider's models to the store. */
import type { OauthPayload } from "../../store/people/oauth-records.ts";
import { type ClientDeps, type ClientRecord, findClient } from "./clients.ts";
import { currentBrowser } from "./step-binding.ts";

/** Lifetime of records that oidc-provider saves without one. */
const KEPT_SECONDS = 30 * 24 * 3600;

/** The model of a sign-in step's record; it belongs to the browser that began the step. */
const STEP = "Interaction";

export interface Adapter {
  upsert(id: string, payload: OauthPayload, expiresIn?: number): Promise<void>;
  find(id: string): Promise<OauthPayload | ClientRecord | undefined>;
  findByUid(uid: string): Promise<OauthPayload | undefined>;
  findByUserCode(userCode: string): Promise<OauthPayload | undefined>;
  consume(id: string): Promise<void>;
  destroy(id: string): Promise<void>;
  revokeByGrantId(grantId: string): Promise<void>;
}

export const createAdapter =
  (deps: ClientDeps) =>
  (model: string, { store } = deps): Adapter => ({
    upsert: (id, payload, expiresIn = KEPT_SECONDS) =>
      store.oauth.put(model, id, model === STEP ? { ...payload, browser: currentBrowser()?.id } : payload, expiresIn),
    async find(id) {
      if (model === "Client") return findClient(deps, id);
      const found = await store.oauth.find(model, id);
      return model === STEP && (found?.browser === undefined || found.browser !== currentBrowser()?.id)
        ? undefined
        : found;
    },
    findByUid: (uid) => store.oauth.findByUid(model, uid),
    findByUserCode: (userCode) => store.oauth.findByUserCode(model, userCode),
    async consume(id) {
      if (await store.oauth.consume(model, id)) return;
      const { errors } = await import("oidc-provider");
      const { InvalidGrant = Error } = errors;
      throw new InvalidGrant("it has been used already");
    },
    destroy: (id) => store.oauth.remove(model, id),
    revokeByGrantId: (grantId) => store.oauth.removeGrant(grantId),
  });
