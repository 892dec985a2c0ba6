/**
 * The old server's half of an upgrade. The new version is started beside it and tried; then the old one holds the port,
 * finishes its requests, lets go of the data folder and waits until the new one serves. When the new one does not, the
 * old one goes on in this very process, with the database as it was.
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
  /** Of `berth up`: the new server gets the same. */
  args: readonly string[];
  app: App;
  attendant: ProcessIdentity | undefined;
  /** Starts this version again on the port. */
  restart(port: HeldPort): Promise<void>;
  /** This server is no longer one that other commands should find. */
  removeNote(): void;
}

/** The process that serves now, or null: this one still does, or does again. */
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

/** From PostgreSQL migrations cannot be taken back: other servers may be using it, and a copy takes its time. */
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
 * What has to be undone together. The new version is current before it may change the database: only that version can
 * open the database then, should this process be killed in between.
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

/** Connections that waited, and the end of the talk. */
async function sendAll(child: ChildProcess, sockets: readonly Socket[]): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    if (child.connected) child.once("disconnect", () => resolve());
    else resolve();
  });
  const connection: FromOld = { type: "connection" };
  const bye: FromOld = { type: "bye" };
  const ignore = (): void => {}; // a child that is gone by now is seen by whoever attends it
  for (const socket of sockets) child.send(connection, socket, {}, ignore);
  child.send(bye, ignore);
  await closed;
}
