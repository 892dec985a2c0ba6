/**
 * The files of the data folder that hold keys, each readable by its owner only:
 *
 * - `secret.key`: the key in use.
 * - `secret.key.next`: the key that `berth rotate-key` is going over to.
 * - `secret.key.FINGERPRINT.old`: a key of before a rotation. No server reads it; backups of that time need it.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { makeDataFolder } from "../lib/data-folder.ts";
import { fingerprintOf } from "../lib/sealed-box.ts";

const KEY_BYTES = 32;

export const secretKeyFile = (dataDir: string): string => join(dataDir, "secret.key");
export const nextKeyFile = (dataDir: string): string => join(dataDir, "secret.key.next");
export const oldKeyFile = (dataDir: string, fingerprint: string): string =>
  join(dataDir, `secret.key.${fingerprint}.old`);

export const makeKey = (): Buffer => randomBytes(KEY_BYTES);

/** Returns null when there is no such file. */
export function readKeyFile(path: string): Buffer | null {
  if (!existsSync(path)) return null;
  const key = Buffer.from(readFileSync(path, "utf8").trim(), "hex");
  if (key.length !== KEY_BYTES)
    throw new Error(`${path} does not hold a key of ${KEY_BYTES} bytes in hexadecimal; restore it from a backup.`);
  return key;
}

/** Fails when the file exists: a key is never overwritten. */
export function keepSecretKey(dataDir: string, key: Buffer): void {
  makeDataFolder(dataDir);
  writeKey(secretKeyFile(dataDir), key);
}

/** The key to rotate to: the existing next key, or a new one that is durable when this returns. */
export function keepNextKey(dataDir: string): Buffer {
  const path = nextKeyFile(dataDir);
  const known = readKeyFile(path);
  if (known) return known;
  const key = makeKey();
  const partial = `${path}.${process.pid}`;
  rmSync(partial, { force: true });
  writeKey(partial, key);
  renameSync(partial, path); // atomic: the file is complete or absent
  syncFolder(dataDir);
  return key;
}

/**
 * Once the database belongs to the next key, that key replaces the one in use. A `secret.key` exists at every moment,
 * and a later process may repeat every step after a killed one.
 */
export function promoteNextKey(dataDir: string, fingerprint: string): void {
  const next = readKeyFile(nextKeyFile(dataDir));
  if (next === null || fingerprintOf(next) !== fingerprint) return;
  const current = readKeyFile(secretKeyFile(dataDir));
  if (current !== null && fingerprintOf(current) !== fingerprint) {
    const old = oldKeyFile(dataDir, fingerprintOf(current));
    unless("EEXIST", () => linkSync(secretKeyFile(dataDir), old));
    syncFolder(dataDir);
  }
  unless("ENOENT", () => renameSync(nextKeyFile(dataDir), secretKeyFile(dataDir)));
  syncFolder(dataDir);
}

/** Runs `step`. The error code `isDone` means that another process of this data folder has just done it. */
function unless(isDone: string, step: () => void): void {
  try {
    step();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== isDone) throw error;
  }
}

function writeKey(path: string, key: Buffer): void {
  const file = openSync(path, "wx", 0o600);
  writeSync(file, key.toString("hex"));
  fsyncSync(file); // losing this file loses every secret, so it is durable before it is used
  closeSync(file);
}

function syncFolder(dataDir: string): void {
  const folder = openSync(dataDir, "r");
  fsyncSync(folder);
  closeSync(folder);
}
