/** `berth backup` and `berth restore`: one file with everything the platform knows. */
import { existsSync, rmSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { readSecretKeys, secretKeyPlace } from "../../auth/secret-key.ts";
import { keepSecretKey, oldKeyFile, secretKeyFile } from "../../auth/secret-key-files.ts";
import type { Config } from "../../config.ts";
import { PlatformError } from "../../contract/errors.ts";
import { fingerprintOf } from "../../lib/sealed-box.ts";
import { toIso } from "../../lib/time/clock.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { writeBackup } from "../../store/backup/backup.ts";
import { type BackupManifest, type BackupReader, openBackup } from "../../store/backup/format.ts";
import { refuseBusyPostgres, restoreBackup } from "../../store/backup/restore.ts";
import { lockDataFolder } from "../../store/database/data-lock.ts";
import { openDatabase } from "../../store/store.ts";
import { packageVersion } from "../version.ts";

export interface BackupCommand {
  config: Config;
  file: string;
  withKey: boolean;
  force: boolean;
}

/** Returns the lines to show to the operator. */
export async function backupTo({ config, file, withKey, force }: BackupCommand): Promise<string[]> {
  const path = resolve(file);
  if (existsSync(path) && !force)
    throw new UsageError(`${path} exists already.`, "choose another name, or use --force");
  const keys = readSecretKeys(config);
  const [inUse] = keys;
  if (!inUse)
    throw new PlatformError("not_found", `There is nothing to back up in ${config.data}: it has no secret.key.`);
  let fingerprint = fingerprintOf(inUse);
  const rows = await writeBackup({
    databaseUrl: config.database_url ?? null,
    dataDir: config.data,
    file: path,
    keyOf: (belongsTo) => {
      const key = belongsTo === null ? inUse : keys.find((one) => fingerprintOf(one) === belongsTo);
      if (!key)
        throw new PlatformError(
          "conflict",
          `The secrets in this database are sealed with the key ${belongsTo}, but ${keyPlace(config)} is ${fingerprint}. Bring back that key first.`,
        );
      fingerprint = fingerprintOf(key);
      return withKey ? { fingerprint, secret: key.toString("hex") } : { fingerprint };
    },
    version: packageVersion(),
    createdAt: toIso(Date.now()),
  });
  return [
    `${path}: ${total(rows)} rows of ${Object.keys(rows).length} tables, ${statSync(path).size} bytes`,
    withKey
      ? "It holds the key: whoever has this file can read every secret in it. Keep it like one."
      : `Its secrets are sealed. To restore it you also need the key ${fingerprint}: ${keyPlace(config)}. Keep a copy of that elsewhere, or use --with-key.`,
  ];
}

const keyPlace = (config: Config): string => secretKeyPlace(config);

export interface RestoreCommand {
  config: Config;
  file: string;
  force: boolean;
}

export async function restoreFrom({ config, file, force }: RestoreCommand): Promise<string[]> {
  if (!existsSync(file)) throw new UsageError(`${file} does not exist.`);
  const backup = await openBackup(file);
  try {
    if (config.database_url) await refuseBusyPostgres(config.database_url);
    const owner = config.database_url ? null : lockDataFolder(config.data, `pid ${process.pid}, restoring a backup`);
    try {
      const undoKey = bringKey(config, backup.manifest);
      try {
        const rows = await restoreDatabase(config, backup, force);
        return [
          `restored ${total(rows)} rows of ${Object.keys(rows).length} tables, as they were at ${backup.manifest.createdAt}`,
          "API keys of that time are valid again. Start the server with `berth up`.",
        ];
      } catch (error) {
        undoKey();
        throw error;
      }
    } finally {
      await owner?.stop();
    }
  } finally {
    backup.close();
  }
}

/** The caller holds the lock of the data folder. Returns the row count of each table. */
export async function restoreDatabase(
  config: Config,
  backup: BackupReader,
  force: boolean,
): Promise<Record<string, number>> {
  const onError = (): void => {}; // a lost connection fails the restore itself
  const database = await openDatabase({ databaseUrl: config.database_url ?? null, dataDir: config.data, onError });
  try {
    return await restoreBackup(database, backup, { force, nowMs: Date.now() });
  } finally {
    await database.close();
  }
}

/**
 * Makes sure that the secrets can be decrypted afterwards. The key is restored first: with a database but no key, the
 * next start would create a new key, and nothing would show that the secrets are lost.
 */
function bringKey(config: Config, { key }: BackupManifest): () => void {
  const keys = readSecretKeys(config);
  if (keys.some((present) => fingerprintOf(present) === key.fingerprint)) return () => {};
  const [present] = keys;
  if (present) {
    const old = oldKeyFile(config.data, key.fingerprint);
    throw new PlatformError(
      "conflict",
      `The secrets of this backup are sealed with the key ${key.fingerprint}, but ${keyPlace(config)} is ${fingerprintOf(present)}. Restore into a new data folder${key.secret ? "" : " with that key"}.${existsSync(old) ? ` The key is in ${old}: copy it into that folder as secret.key.` : ""}`,
    );
  }
  if (!key.secret) {
    throw new PlatformError(
      "conflict",
      `The secrets of this backup are sealed with the key ${key.fingerprint}, which is not in it. Copy that secret.key to ${secretKeyFile(config.data)}, or set BERTH_SECRET_KEY as it was, and try again.`,
    );
  }
  const brought = Buffer.from(key.secret, "hex");
  if (fingerprintOf(brought) !== key.fingerprint)
    throw new PlatformError("unprocessable", "The key in the backup is damaged.");
  keepSecretKey(config.data, brought);
  return () => rmSync(secretKeyFile(config.data));
}

export const total = (rows: Record<string, number>): number =>
  Object.values(rows).reduce((sum, count) => sum + count, 0);
