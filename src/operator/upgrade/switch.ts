/**
 * The old server's half of an upgrade. The new version is started beside it and tried; then the old server holds the
 * port, finishes its requests, releases the data folder and waits until the new server serves. If that fails, the old
 * server continues in this process, with the database as it was.
 */
import type { ChildProcess } from "node:child_process";
import { accessSync, constants, mkdirSync } from "node:fs";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import type { App } from "../../app.ts";
import type { Config } from "../../config.ts";
import type { HeldPort } from "../../lib/network/held-port.ts";
import { ownIdentity, type ProcessIdentity } from "../../lib/process-note.ts";
import { bringBackDatabase, keepDatabase } from "../../store/upgrade/kept-database.ts";
import { endBeside, startBeside } from "./beside.ts";
import { type FromOld, nextFrom } from "./messages.ts";
import { type UpgradeRecord, type UpgradeState, writeUpgrade } from "./record.ts";
import { currentRoot, installation, makeCurrent } from "./versions.ts";

export interface Switching {
  config: Config;
  log: Logger;
  record: UpgradeRecord;
  /** Arguments of `berth up`, passed on to the new server. */
  args: readonly string[];
  app: App;
  attendant: ProcessIdentity | undefined;
  /** Starts this version again on the port. */
  restart(port: HeldPort): Promise<void>;
  /** Removes the note by which other commands find this server. */
  removeNote(): void;
}

/** The process that serves now, or null when this process still or again serves. */
export async function switchVersion(given: Switching): Promise<ChildProcess | null> {
  const { config, log, app } = given;
  let record = given.record;
  const tell = (state: UpgradeState, more: Partial<UpgradeRecord> = {}): void => {
    record = { ...record, ...more, state };
    writeUpgrade(config.data, record);
    log.info({ to: record.to, ...more }, `upgrade: ${state}`);
  };
  tell("checking");
  const child = startBeside(record.to.root, given.args, app.port.fd());
  try {
    const { migrations } = await nextFrom(child, "loaded", record.limitMs);
    refuseWithoutWayBack(config, migrations);
    if (record.checkOnly) {
      await endBeside(child, { atOnce: true });
      tell("checked", { migrations });
      return null;
    }
    tell("switching", { migrations });
  } catch (error) {
    await endBeside(child, { atOnce: true });
    tell("refused", { reason: (error as Error).message });
    return null;
  }
  const requireMachine = await app.runsWorkloads();
  const port = app.port.hold(record.drainMs);
  await app.stop("keep").catch((error: unknown) => log.warn({ err: error }, "upgrade: the old version stopped badly"));
  given.removeNote();
  const undo = prepare(config, record);
  try {
    undo.begin();
    const go: FromOld = { type: "go", attendant: given.attendant ?? ownIdentity(), requireMachine };
    child.send(go);
    await nextFrom(child, "ready", record.limitMs);
  } catch (error) {
    const { message: reason } = error as Error;
    await endBeside(child, { atOnce: /^it was not ready/.test(reason) });
    try {
      undo.back();
      await given.restart(port);
    } catch (fatal) {
      tell("failed", { reason: `${reason}; then the old version: ${(fatal as Error).message}` });
      throw fatal;
    }
    tell("rolled back", { reason });
    return null;
  }
  await sendAll(child, port.close());
  child.unref();
  tell("done");
  return child;
}

/** Migrations of PostgreSQL cannot be undone: other servers may use the database, and a copy takes too long. */
function refuseWithoutWayBack(config: Config, migrations: number): void {
  if (migrations > 0 && config.database_url)
    throw new Error(
      `it changes the PostgreSQL database (${migrations} steps), which cannot be taken back by itself; see docs/operations.md, Upgrade by hand`,
    );
  const { folder } = installation();
  mkdirSync(folder, { recursive: true });
  accessSync(folder, constants.W_OK);
}

/**
 * Changes that must be undone together. The new version becomes current before it may change the database: if this
 * process is killed in between, only that version can open the database.
 */
function prepare({ data }: Config, { to, migrations = 0 }: UpgradeRecord) {
  const given = installation();
  const before = currentRoot(given);
  let kept = false;
  return {
    begin(): void {
      if (migrations > 0) {
        keepDatabase(data);
        kept = true;
      }
      makeCurrent(given, to.root);
    },
    back(): void {
      if (kept) bringBackDatabase(data);
      makeCurrent(given, before);
    },
  };
}

/** Sends the connections that waited, then `bye`. */
async function sendAll(child: ChildProcess, sockets: readonly Socket[]): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    if (child.connected) child.once("disconnect", () => resolve());
    else resolve();
  });
  const connection: FromOld = { type: "connection" };
  const bye: FromOld = { type: "bye" };
  const ignore = (): void => {}; // a child that has exited is noticed by its attendant
  for (const socket of sockets) child.send(connection, socket, {}, ignore);
  child.send(bye, ignore);
  await closed;
}
