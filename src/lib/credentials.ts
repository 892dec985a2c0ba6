/** The file in which a server stores the address and key of the platform on this machine for the CLI. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDataFolder } from "./data-folder.ts";

export interface Credentials {
  url: string;
  workspace: string;
  apiKey?: string;
}

export const credentialsFile = (dataDir: string): string => join(dataDir, "credentials.json");

export function readCredentials(dataDir: string): Credentials | null {
  const file = credentialsFile(dataDir);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Credentials) : null;
}

/**
 * Writes the file; without a given key the stored one is kept. Written beside and renamed, so that it is never read
 * half.
 */
export function writeCredentials(dataDir: string, credentials: Credentials): string {
  const file = credentialsFile(dataDir);
  makeDataFolder(dataDir);
  const next = `${file}.${process.pid}`;
  writeFileSync(next, `${JSON.stringify({ ...readCredentials(dataDir), ...credentials }, null, 2)}\n`, { mode: 0o600 });
  renameSync(next, file);
  return file;
}
