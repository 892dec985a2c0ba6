/** The key that everything secret hangs on: given by the operator, or made once and kept in the data folder. */
import { createHash, randomBytes } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "../contract/errors.ts";
import { makeDataFolder } from "../lib/data-folder.ts";
import { deriveKey } from "../lib/sealed-box.ts";
import type { Records } from "../store/records.ts";

const KEY_BYTES = 32;

/** Where the operator looks for it. */
export const secretKeyPlace = (dataDir: string, given: string | undefined): string =>
  given ? "BERTH_SECRET_KEY" : secretKeyFile(dataDir);

export const secretKeyFile = (dataDir: string): string => join(dataDir, "secret.key");

export interface SecretKey {
  key: Buffer;
  /** Made just now, and kept nowhere yet. */
  fresh: boolean;
}

/**
 * The key that is there, or a new one. A new one is in memory only: `settleSecretKey` keeps it once a database takes
 * it, so that a start which fails before leaves no key behind that belongs to nothing.
 */
export function takeSecretKey(dataDir: string, given: string | undefined): SecretKey {
  const key = readSecretKey(dataDir, given);
  return key ? { key, fresh: false } : { key: randomBytes(KEY_BYTES), fresh: true };
}

/** null when there is none yet. */
export function readSecretKey(dataDir: string, given: string | undefined): Buffer | null {
  if (given) return createHash("sha256").update(given).digest();
  const path = secretKeyFile(dataDir);
  if (!existsSync(path)) return null;
  const key = Buffer.from(readFileSync(path, "utf8").trim(), "hex");
  if (key.length !== KEY_BYTES)
    throw new Error(`${path} does not hold a key of ${KEY_BYTES} bytes in hexadecimal; restore it from a backup.`);
  return key;
}

/** Fails when there is one: it is never replaced. */
export function keepSecretKey(dataDir: string, key: Buffer): void {
  makeDataFolder(dataDir);
  const file = openSync(secretKeyFile(dataDir), "wx", 0o600);
  writeSync(file, key.toString("hex"));
  fsyncSync(file); // losing this file loses every secret, so it is on the disk before it is used
  closeSync(file);
}

/** Tells keys apart without telling the key. */
export const fingerprintOf = (key: Buffer): string => deriveKey(key, "fingerprint").toString("hex").slice(0, 16);

const FINGERPRINT_RECORD = "secret-key-fingerprint";

/**
 * A database belongs to the key of its first start. With another one nothing secret in it could be read, and two
 * servers with a key each would hand out cursors and addresses that the other refuses. A new key is on the disk before
 * the database knows of it, and goes away again when another server was faster.
 */
export async function settleSecretKey(
  records: Records,
  { key, fresh }: SecretKey,
  { dataDir, place }: { dataDir: string; place: string },
): Promise<void> {
  const own = fingerprintOf(key);
  const known = await records.read(FINGERPRINT_RECORD);
  if (known !== null && known !== own) throw anotherKey(known, fresh ? null : own, place);
  if (fresh) keepSecretKey(dataDir, key);
  const first = await records.update(FINGERPRINT_RECORD, Number.MAX_SAFE_INTEGER, (value) => ({
    value: value ?? own,
    result: value ?? own,
  }));
  if (first === own) return;
  if (fresh) rmSync(secretKeyFile(dataDir));
  throw anotherKey(first, fresh ? null : own, place);
}

const anotherKey = (first: string, own: string | null, place: string): PlatformError =>
  new PlatformError(
    "conflict",
    `The secrets in this database are sealed with the key ${first}, but ${own === null ? `there is no ${place}` : `${place} is ${own}`}. Every server of one database needs the same key: copy secret.key from the data folder of the first one, or set BERTH_SECRET_KEY as it is there.`,
  );
