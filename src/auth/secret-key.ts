/** The keys that seal all secrets: given by the operator, or created once and kept in the data folder. */
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { PlatformError } from "../contract/errors.ts";
import { fingerprintOf } from "../lib/sealed-box.ts";
import { newestKey, type Unlock } from "../store/sealing/key-records.ts";
import { createKeyring, type KeyPlace, missingKey } from "../store/sealing/keyring.ts";
import {
  keepNextKey,
  keepSecretKey,
  makeKey,
  nextKeyFile,
  promoteNextKey,
  readKeyFile,
  secretKeyFile,
} from "./secret-key-files.ts";

/** The settings that locate the keys. */
export interface KeySettings {
  data: string;
  secret_key?: string | undefined;
  secret_key_next?: string | undefined;
}

/** Where the operator finds the key in use, for messages. */
export const secretKeyPlace = ({ data, secret_key }: KeySettings): string =>
  secret_key ? "BERTH_SECRET_KEY" : secretKeyFile(data);

/** The key in use and the next one, as far as they exist. */
export function readSecretKeys(settings: KeySettings): Buffer[] {
  const { data, secret_key } = settings;
  const inUse = secret_key ? keyOfText(secret_key) : readKeyFile(secretKeyFile(data));
  return [inUse, readNextKey(settings)].filter((key) => key !== null);
}

const keyOfText = (text: string): Buffer => createHash("sha256").update(text).digest();

/** The key to rotate to; null when there is none. */
export const readNextKey = ({ data, secret_key, secret_key_next }: KeySettings): Buffer | null => {
  if (!secret_key) return readKeyFile(nextKeyFile(data));
  return secret_key_next ? keyOfText(secret_key_next) : null;
};

/** The key to rotate to. In the data folder a new one is created; an operator's key has to be given. */
export const takeNextKey = (settings: KeySettings): Buffer | null =>
  settings.secret_key ? readNextKey(settings) : keepNextKey(settings.data);

const placeOf = (settings: KeySettings): KeyPlace => ({
  read: () => readSecretKeys(settings),
  settle: (fingerprint) => {
    if (!settings.secret_key) promoteNextKey(settings.data, fingerprint);
  },
});

/**
 * A database belongs to the key of its first start until a rotation replaces it; no other key opens its secrets. A new
 * key is created only when the database turns out to have none, so that a start that fails earlier leaves no unused key
 * behind. The key is on the disk before the database records it, and is removed again when another server recorded its
 * own first.
 */
export const unlockOrMake =
  (settings: KeySettings): Unlock =>
  async (records) => {
    const state = await records.state();
    if (state.fingerprint !== null || readSecretKeys(settings).length > 0) return unlock(settings)(records);
    const key = makeKey();
    keepSecretKey(settings.data, key);
    const first = await records.settle(fingerprintOf(key));
    if (first === fingerprintOf(key)) return createKeyring(placeOf(settings), first);
    rmSync(secretKeyFile(settings.data));
    throw anotherKey(first, settings, null);
  };

/** Unlocks with the existing keys. */
export const unlock =
  (settings: KeySettings): Unlock =>
  async (records) => {
    const keys = readSecretKeys(settings);
    const [inUse = null] = keys.map(fingerprintOf);
    if (inUse !== null && (await records.state()).fingerprint === null) await records.settle(inUse);
    const state = await records.state();
    const first = state.fingerprint ?? "";
    if (!keys.some((key) => fingerprintOf(key) === first)) throw anotherKey(first, settings, inUse);
    const keyring = createKeyring(placeOf(settings), newestKey(state) ?? first);
    if (!keyring.has(keyring.newest)) throw missingKey(keyring.newest);
    if (state.rotation === null) keyring.settle(first);
    return keyring;
  };

const anotherKey = (first: string, settings: KeySettings, own: string | null): PlatformError => {
  const place = secretKeyPlace(settings);
  return new PlatformError(
    "conflict",
    `The secrets in this database are sealed with the key ${first}, but ${own === null ? `there is no ${place}` : `${place} is ${own}`}. Every server of one database needs the same key: copy secret.key from the data folder of the first one, or set BERTH_SECRET_KEY as it is there.`,
  );
};
