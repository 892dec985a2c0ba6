/**
 * `berth upgrade`: installs a version beside the current one and asks the running server to switch to it. The server
 * does the rest (switch.ts): this command may be killed at any moment, and a server still serves.
 */
import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../../config.ts";
import { PlatformError } from "../../contract/errors.ts";
import { isRunning, type ProcessNote, runningNotes } from "../../lib/process-note.ts";
import { toIso } from "../../lib/time/clock.ts";
import { lockFolder } from "../../store/database/data-lock.ts";
import { packageVersion } from "../version.ts";
import { endBeside, startBeside } from "./beside.ts";
import { nextFrom } from "./messages.ts";
import { isOver, readUpgrade, STATES, UPGRADE_SIGNAL, type UpgradeRecord, writeUpgrade } from "./record.ts";
import { install, sourceOf } from "./source.ts";
import { currentRoot, findInstalled, installation, makeCurrent, sweep, UPGRADE_LOCK } from "./versions.ts";

const LOOK_MS = 50;

export interface UpgradeCommand {
  config: Config;
  /** Flags of `berth up` for trying a version when no server runs. */
  args: readonly string[];
  /** A git ref or a path; absent: the branch that the checkout follows. */
  to: string | undefined;
  checkOnly: boolean;
  drainMs: number;
  limitMs: number;
  note(text: string): void;
}

/** Returns the lines to show to the operator; throws unless the new version serves, or could. */
export async function upgrade(command: UpgradeCommand): Promise<string[]> {
  const { config, note } = command;
  const given = installation();
  mkdirSync(given.folder, { recursive: true });
  const lock = lockFolder(given.folder, UPGRADE_LOCK);
  if (!lock) throw new PlatformError("conflict", `Another \`berth upgrade\` is at work in ${given.folder}.`);
  try {
    const servers = runningNotes(config.data);
    const [server] = servers;
    if (servers.some(({ version }) => version === undefined))
      throw new PlatformError("conflict", "The running server is too old for this; upgrade by hand this once.");
    const used = servers.flatMap(({ root }) => root ?? []);
    const source = await sourceOf(given, command.to);
    const checked = findInstalled(given, source.origin, [currentRoot(given), ...used]);
    await sweep(given, checked ? [...used, checked] : used);
    if (checked) note(`${checked} is installed already`);
    const root = checked ?? (await install(given, source, note));
    return server ? await ask(server, root, command) : await tryAlone(root, command);
  } finally {
    await lock.stop();
  }
}

/** Asks the running server, which does the rest. */
async function ask(server: ProcessNote, root: string, command: UpgradeCommand): Promise<string[]> {
  const { config, checkOnly, drainMs, limitMs, note } = command;
  const order: UpgradeRecord = {
    id: randomUUID(),
    state: "asked",
    from: { version: server.version ?? "", root: server.root ?? "" },
    to: { version: packageVersion(root), root },
    askedAt: toIso(Date.now()),
    ...{ checkOnly, drainMs, limitMs },
  };
  writeUpgrade(config.data, order);
  process.kill(server.pid, UPGRADE_SIGNAL);
  let told: string | null = null;
  for (;;) {
    // Checked before reading: a server writes its last record before it exits.
    const alive = isRunning(server);
    const record = readUpgrade(config.data);
    if (record?.id !== order.id)
      throw new PlatformError("conflict", "Another upgrade has taken the place of this one.");
    if (isOver(record)) return report(record);
    if (record.state !== told) note(`${record.state}: ${STATES[record.state]}`);
    told = record.state;
    if (!alive) throw new PlatformError("unavailable", "The server has ended meanwhile. `berth up` starts it again.");
    await delay(LOOK_MS);
  }
}

function report({ state, from, to, migrations = 0, reason }: UpgradeRecord): string[] {
  const steps =
    migrations === 0
      ? "the database stays as it is"
      : `${migrations} change${migrations === 1 ? "" : "s"} to the database`;
  if (state === "done")
    return [`${to.version} serves now, in place of ${from.version} (${steps}); it is in ${to.root}`];
  if (state === "checked") return [`${to.version} can take over from ${from.version}: ${steps}`];
  throw new PlatformError(
    "conflict",
    `${to.version} was not taken into use: ${reason ?? "no reason was told"}. Now: ${STATES[state]} (${from.version}).`,
  );
}

/** Without a running server the version is tried, and the next start runs it. */
async function tryAlone(root: string, { args, limitMs, checkOnly }: UpgradeCommand): Promise<string[]> {
  const given = installation();
  const child = startBeside(root, args);
  try {
    const { migrations } = await nextFrom(child, "loaded", limitMs);
    const to = packageVersion(root);
    const steps = migrations === 0 ? "" : `; it will change the database (${migrations} steps): make a backup first`;
    if (checkOnly) return [`${to} can be started${steps}`];
    makeCurrent(given, root);
    return [`${to} is what the next start runs${steps}; it is in ${root}`];
  } catch (error) {
    const now = packageVersion(currentRoot(given));
    throw new PlatformError(
      "conflict",
      `The new version cannot be used: ${(error as Error).message}. The next start runs ${now}.`,
    );
  } finally {
    await endBeside(child, { atOnce: true });
  }
}
