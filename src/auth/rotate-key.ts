/** Rotates the secret key and records that in the audit log. */
import type { Rotated, RotationOptions } from "../store/sealing/rotation.ts";
import type { Store } from "../store/store.ts";

export async function rotateKey(store: Store, to: string, options: RotationOptions): Promise<Rotated> {
  const rotated = await store.rotateKey(to, options);
  const [account] = await store.people.listAccountsAcrossUsers();
  await store.audit.record({
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
  });
  return rotated;
}
