/**
 * Verifies secrets of service accounts. The secret of an account that a person made is stored as a hash. The secret of
 * a running workload is not stored: it names the replica that it was given to, with a seal that only the platform can
 * make, and is valid while that replica runs. So every start rotates it, and the end of the replica revokes it.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "../lib/time/clock.ts";
import type { ServiceAccount } from "../store/people/keys.ts";
import type { Store } from "../store/store.ts";
import { ENDED, endOf } from "./rights/ends.ts";

export interface MachineDeps {
  store: Store;
  clock: Clock;
  keyFor(purpose: string): Buffer;
  /** Whether the workload with this uid has this replica now. */
  isRunning(workload: string, copy: string): Promise<boolean>;
}

export async function verifyMachine(
  { store, clock, keyFor, isRunning }: MachineDeps,
  clientId: string,
  secret: string,
): Promise<ServiceAccount | null> {
  const account = await store.keys.findServiceAccountAcrossWorkspaces(clientId);
  if (!account) return null;
  if ((await endOf(account.hangs_on, { store, clock })) === ENDED) return null;
  if (account.workload === null) return store.keys.verifyServiceAccount(clientId, secret);
  const copy = copyOf(keyFor, clientId, secret);
  return copy !== null && (await isRunning(account.workload, copy)) ? account : null;
}

export function copySecret(keyFor: MachineDeps["keyFor"], clientId: string, copy: string): string {
  const seal = createHmac("sha256", keyFor("workload-secrets")).update(`${clientId}\0${copy}`).digest("base64url");
  return `${Buffer.from(copy).toString("base64url")}.${seal}`;
}

/** The replica that a secret names; null when the platform did not make the secret. */
export function copyOf(keyFor: MachineDeps["keyFor"], clientId: string, secret: string): string | null {
  const copy = Buffer.from(secret.split(".")[0] ?? "", "base64url").toString("utf8");
  const expected = Buffer.from(copySecret(keyFor, clientId, copy));
  const given = Buffer.from(secret);
  return given.length === expected.length && timingSafeEqual(given, expected) ? copy : null;
}
