/**
 * `berth down`: stops the servers of a data folder, as Ctrl-C would, and ends the workloads that would stay running.
 * Sandboxes keep their files unless the operator says otherwise.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Config, driverDir } from "../config.ts";
import { PlatformError } from "../contract/errors.ts";
import { makeRoomToStart } from "../lib/disk/disk-reserve.ts";
import { isRunning, leaveWish, type ProcessNote, runningNotes } from "../lib/process-note.ts";
import { lockDataFolder } from "../store/database/data-lock.ts";

/** Longest wait for a server to stop: requests get ten seconds, then workloads end; a slower server hangs. */
const STOP_MS = 60_000;
const LOOK_MS = 50;

/** Content of the file that tells a server to end its workloads as well. */
export const END_WORKLOADS = "end-workloads";

export interface DownCommand {
  config: Config;
  /** Leave workloads as the setting on_stop says. */
  keepWorkloads: boolean;
  /** Remove the files of sandboxes too. */
  purge: boolean;
}

/** Returns the lines to show to the operator. */
export async function stopServers({ config, keepWorkloads, purge }: DownCommand): Promise<string[]> {
  makeRoomToStart(config.data); // the request below and the lock are files, which need disk space
  const notes = runningNotes(config.data);
  for (const { pid } of notes) {
    if (!keepWorkloads) leaveWish(config.data, pid, END_WORKLOADS);
    process.kill(pid, "SIGTERM");
  }
  await Promise.all(notes.map(ended));
  const lines = notes.map(({ pid, url }) => `stopped ${url} (pid ${pid})`);
  if (notes.length === 0) lines.push(`no server of ${config.data} is running`);
  if (keepWorkloads) return lines;
  const { ownedWorkloads } = await import("./runtime.ts");
  const isLeft = (await ownedWorkloads(config)).some(({ runs }) => runs || purge);
  if (isLeft || (notes.length === 0 && existsSync(workloadsDir(config)))) {
    const { running, removed } = await endWorkloads(config, purge);
    if (running > 0) lines.push(`ended ${counted(running)} that had been left running`);
    if (removed > 0) lines.push(`removed the files of ${counted(removed)}`);
  }
  return lines;
}

async function ended(note: ProcessNote): Promise<void> {
  const until = performance.now() + STOP_MS;
  while (isRunning(note)) {
    if (performance.now() > until) {
      throw new PlatformError(
        "timeout",
        `The server with pid ${note.pid} does not end. Look at its log, or end it with kill -9 ${note.pid}.`,
      );
    }
    await delay(LOOK_MS);
  }
}

const workloadsDir = (config: Config): string => join(driverDir(config), "workloads");
const counted = (count: number): string => `${count} workload${count === 1 ? "" : "s"}`;

/**
 * Ends the workloads that a stopped or killed server left running, and removes files when told; returns how many. Also
 * removes the control groups and the network of a killed server.
 */
async function endWorkloads(config: Config, purge: boolean): Promise<{ running: number; removed: number }> {
  const { openRuntime } = await import("./runtime.ts");
  const owner = lockDataFolder(config.data, `pid ${process.pid}, ending workloads`);
  try {
    const driver = await openRuntime(config);
    const all = await driver.list();
    await driver.stop(purge ? "kill" : "end");
    return { running: all.filter(({ state }) => state !== "exited").length, removed: purge ? all.length : 0 };
  } finally {
    await owner.stop();
  }
}
