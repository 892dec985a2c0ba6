/** Rotates the secret key and records that in the audit log, with the transaction that ends the rotation. */

import type { AuditEntry } from "../store/audit.ts";
import type { Rotated, RotationOptions } from "../store/sealing/rotation.ts";
import type { Store } from "../store/store.ts";

export async function rotateKey(store: Store, to: string, options: RotationOptions): Promise<Rotated> {
  const [account] = await store.people.listAccountsAcrossUsers();
  const entry: AuditEntry = {
    actor: "",
    actorType: "operator",
    actorName: "operator",
    authMethod: "machine",
    keyId: null,
    action: "secretKeyRotated",
    target: to,
    accountId: account?.id ?? null,
    workspace: null,
    outcome: "ok",
    status: 200,
    sourceAddress: "machine",
    requestId: "",
  };
  return store.rotateKey(to, { ...options, onEnd: (tx) => store.audit.within(tx, entry) });
}
