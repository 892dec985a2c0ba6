/**
 * `upgrade.json` in the data folder: what `berth upgrade` asks of the running server, and what became of it. The command
 * writes the order and signals the server; the server alone writes from then on, so the command may end at any time.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Tells a server to look at the order. Only servers whose note has a version know it; others would end. */
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
  /** Try the new version, and go on with the old one. */
  checkOnly: boolean;
  /** For requests in flight to finish. */
  drainMs: number;
  /** For the new version to be loaded, and again to be ready once the old one has stopped. */
  limitMs: number;
  /** Steps by which the new version changes the database. */
  migrations?: number;
  /** Why it came to this. */
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

/** Written beside and renamed, so nobody reads half of it. */
export function writeUpgrade(dataDir: string, record: UpgradeRecord): void {
  const next = `${fileOf(dataDir)}.${process.pid}`;
  writeFileSync(next, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
  renameSync(next, fileOf(dataDir));
}
