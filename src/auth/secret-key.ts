/** The key that everything secret hangs on: given by the operator, or made once and kept in the data folder. */
import { createHash, randomBytes } from "node:crypto";
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

const FILE = "secret.key";

export function loadSecretKey(dataDir: string, given: string | undefined): Buffer {
  if (given) return createHash("sha256").update(given).digest();
  const path = join(dataDir, FILE);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  try {
    const file = openSync(path, "wx", 0o600);
    writeSync(file, randomBytes(32).toString("hex"));
    fsyncSync(file); // losing this file loses every secret, so it is on the disk before it is used
    closeSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const key = Buffer.from(readFileSync(path, "utf8").trim(), "hex");
  if (key.length !== 32)
    throw new Error(`${path} does not hold a key of 32 bytes in hexadecimal; restore it from a backup.`);
  return key;
}
