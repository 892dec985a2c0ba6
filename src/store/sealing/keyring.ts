/**
 * The keys that seal values in the database. A sealed value begins with the fingerprint of its key, so a value of an
 * older key still opens while `berth rotate-key` reseals everything. A process keeps every key that it has loaded until
 * it exits: a row read just before the end of a rotation must still open.
 */
import { PlatformError } from "../../contract/errors.ts";
import { createSealedBox, deriveKey, fingerprintOf, type SealedBox } from "../../lib/sealed-box.ts";

/** Where the operator keeps the keys. */
export interface KeyPlace {
  /** The keys present now, the one in use first. */
  read(): readonly Buffer[];
  /** Called when the database belongs to this key and no rotation is in progress: other keys can be put aside. */
  settle(fingerprint: string): void;
}

export interface Keyring extends SealedBox {
  /** Fingerprint of the key that seals new values. */
  readonly newest: string;
  /** Whether the key is known. Reads the KeyPlace again when it is not. */
  has(fingerprint: string): boolean;
  /** The key itself; throws when it is unknown. */
  keyOf(fingerprint: string): Buffer;
  /** See KeyPlace. */
  settle(fingerprint: string): void;
  /** Seals new values with this key from now on. Without the key, sealing is refused. */
  sealWith(fingerprint: string): void;
}

const PURPOSE = "resources";
const SEPARATOR = ".";

/** The first characters of a value that this key has sealed. */
export const sealedPrefix = (fingerprint: string): string => `${fingerprint}${SEPARATOR}`;

export function createKeyring(place: KeyPlace, newestKey: string): Keyring {
  const byFingerprint = new Map<string, { key: Buffer; box: SealedBox }>();
  let newest = newestKey;
  const learn = (): void => {
    for (const key of place.read())
      byFingerprint.set(fingerprintOf(key), { key, box: createSealedBox(deriveKey(key, PURPOSE)) });
  };
  const has = (fingerprint: string): boolean => {
    if (!byFingerprint.has(fingerprint)) learn();
    return byFingerprint.has(fingerprint);
  };
  const find = (fingerprint: string): { key: Buffer; box: SealedBox } => {
    const found = has(fingerprint) ? byFingerprint.get(fingerprint) : undefined;
    if (!found) throw missingKey(fingerprint);
    return found;
  };
  /** Opens values of 0.1.0, which do not name their key. */
  const openNameless = (sealed: string, context: string): string => {
    let refusal: unknown = missingKey(newest);
    for (const { box } of byFingerprint.values())
      try {
        return box.open(sealed, context);
      } catch (error) {
        refusal = error;
      }
    throw refusal;
  };
  learn();
  return {
    get newest() {
      return newest;
    },
    has,
    keyOf: (fingerprint) => find(fingerprint).key,
    settle: (fingerprint) => place.settle(fingerprint),
    sealWith: (fingerprint) => {
      newest = fingerprint;
    },
    seal: (text, context) => sealedPrefix(newest) + find(newest).box.seal(text, context),
    open: (sealed, context) => {
      const end = sealed.indexOf(SEPARATOR);
      if (end < 0) return openNameless(sealed, context);
      return find(sealed.slice(0, end)).box.open(sealed.slice(end + 1), context);
    },
  };
}

export const missingKey = (fingerprint: string): PlatformError =>
  new PlatformError(
    "unavailable",
    `This server does not have the key ${fingerprint}, which seals the secrets of this database now. Copy secret.key (secret.key.next while a rotation is under way) from the data folder of a server that has it, or set BERTH_SECRET_KEY and BERTH_SECRET_KEY_NEXT as they are there, and restart this server.`,
  );
