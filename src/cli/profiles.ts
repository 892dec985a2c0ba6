/** Servers that somebody has logged in to, in a file beside the credentials of the server on this machine. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../lib/usage-error.ts";

/** The server on this machine: its address and key are what the server wrote; only the workspace is chosen here. */
export const LOCAL_PROFILE = "local";

export interface Profile {
  url?: string;
  apiKey?: string;
  workspace?: string;
}

export interface Profiles {
  current: string;
  profiles: Record<string, Profile>;
}

export const profilesFile = (dataDir: string): string => join(dataDir, "profiles.json");

export function readProfiles(dataDir: string): Profiles {
  const file = profilesFile(dataDir);
  if (!existsSync(file)) return { current: LOCAL_PROFILE, profiles: {} };
  try {
    const { current = LOCAL_PROFILE, profiles = {} } = JSON.parse(readFileSync(file, "utf8")) as Partial<Profiles>;
    return { current, profiles };
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`, "remove it and log in again");
  }
}

/** Written beside and renamed, so a reader never sees half of it. */
export function writeProfiles(dataDir: string, profiles: Profiles): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const file = profilesFile(dataDir);
  const next = `${file}.${process.pid}`;
  writeFileSync(next, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  renameSync(next, file);
}
