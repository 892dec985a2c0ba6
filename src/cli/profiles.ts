/** Servers that the user has logged in to, in a file beside the credentials of the server on this machine. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { readCredentials } from "../lib/credentials.ts";
import { nearestWord } from "../lib/nearest-word.ts";
import { UsageError } from "../lib/usage-error.ts";

/** The server on this machine: its address and key come from the file it wrote; only the workspace is stored here. */
export const LOCAL_PROFILE = "local";

/** An older lock was left by a killed command; none holds it longer than one request. */
const LOCK_AGE_MAX_MS = 60_000;
const LOCK_LOOK_MS = 50;

/** The result of a user's sign-in. */
export interface Tokens {
  accessToken: string;
  /** Can be used once. */
  refreshToken: string;
  expiresAt: number;
}

export interface Profile {
  url?: string;
  apiKey?: string;
  tokens?: Tokens;
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

/** The error for an unknown profile: lists the names, and suggests the closest. */
export function noProfile(name: string, dataDir: string): UsageError {
  const here = readCredentials(dataDir) === null ? [] : [LOCAL_PROFILE];
  const others = Object.entries(readProfiles(dataDir).profiles).filter(([, { url }]) => url !== undefined);
  const names = [...new Set([...here, ...others.map(([known]) => known)])];
  const near = nearestWord(name, names);
  return new UsageError(
    `there is no profile '${name}'; known: ${names.join(", ") || "none"}.${near ? ` Did you mean ${near}?` : ""}`,
    `see \`berth profiles list\`, or use \`berth login URL --profile ${name}\``,
  );
}

/** Reads and replaces the file under a lock. */
export async function changeProfiles<T>(
  dataDir: string,
  change: (known: Profiles) => Promise<{ profiles?: Profiles; result: T }>,
): Promise<T> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = `${profilesFile(dataDir)}.lock`;
  await take(lock);
  try {
    const { profiles, result } = await change(readProfiles(dataDir));
    if (profiles) write(dataDir, profiles);
    return result;
  } finally {
    rmSync(lock, { force: true });
  }
}

/** Written to a temporary file and renamed, so that readers never see half of it. */
function write(dataDir: string, profiles: Profiles): void {
  const file = profilesFile(dataDir);
  const next = `${file}.${process.pid}`;
  writeFileSync(next, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  renameSync(next, file);
}

/** Whether the command that made the lock was killed before it removed it. */
function isLeftBehind(lock: string): boolean {
  try {
    const pid = Number(readFileSync(lock, "utf8"));
    if (!Number.isSafeInteger(pid) || pid <= 0) return false; // just created, pid not written yet
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

async function take(lock: string): Promise<void> {
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > LOCK_AGE_MAX_MS || isLeftBehind(lock)) rmSync(lock, { force: true });
      else await pause(LOCK_LOOK_MS);
    }
  }
}
