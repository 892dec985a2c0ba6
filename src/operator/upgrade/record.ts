/**
 * `upgrade.json` in the data folder: the request of `berth upgrade` to the running server, and its outcome. The command
 * writes the request and signals the server; from then on only the server writes, so the command may end at any time.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Tells a server to read the request. Sent only to servers whose note has a version; older ones would exit. */
export const UPGRADE_SIGNAL = "SIGUSR2";

export const STATES = {
  asked: "waits for the server",
  checking: "the new version is loaded and tried beside the running one",
  switching: "the old version finishes its requests, the new one takes over",
  checked: "the new version could take over",
  done: "the new version serves",
  refused: "the old version serves and has served all the time",
  "rolled back": "the old version serves again",
  failed: "no version serves",
} as const;

export type UpgradeState = keyof typeof STATES;

const UNDER_WAY: ReadonlySet<UpgradeState> = new Set(["asked", "checking", "switching"]);

export interface Side {
  version: string;
  root: string;
}

export interface UpgradeRecord {
  id: string;
  state: UpgradeState;
  from: Side;
  to: Side;
  askedAt: string;
  /** Try the new version, and keep running the old one. */
  checkOnly: boolean;
  /** Time for requests in flight to finish, in ms. */
  drainMs: number;
  /** Time for the new version to load, and again to become ready after the old one has stopped. In ms. */
  limitMs: number;
  /** Number of database migrations that the new version brings. */
  migrations?: number;
  /** Why the upgrade failed or was refused. */
  reason?: string;
}

const fileOf = (dataDir: string): string => join(dataDir, "upgrade.json");

export const isOver = ({ state }: UpgradeRecord): boolean => !UNDER_WAY.has(state);

export function readUpgrade(dataDir: string): UpgradeRecord | null {
  try {
    return JSON.parse(readFileSync(fileOf(dataDir), "utf8")) as UpgradeRecord;
  } catch {
    return null;
  }
}

/** Written to a temporary file and renamed, so that readers never see half of it. */
export function writeUpgrade(dataDir: string, record: UpgradeRecord): void {
  const next = `${fileOf(dataDir)}.${process.pid}`;
  writeFileSync(next, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
  renameSync(next, fileOf(dataDir));
}
