/** `berth restart-edges`: has the running servers of a data folder replace their edge processes, one after another. */
import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../config.ts";
import { PlatformError } from "../contract/errors.ts";
import {
  isRunning,
  leaveWish,
  type ProcessNote,
  RESTART_EDGES,
  ROTATE_SIGNAL,
  runningNotes,
  wishFor,
} from "../lib/process-note.ts";

/** Longest wait for all new processes of a server. One starts within seconds. */
const RESTART_MS = 120_000;
const LOOK_MS = 50;

/** Returns the lines to show to the operator. */
export async function restartEdges(config: Config): Promise<string[]> {
  const servers = runningNotes(config.data);
  if (servers.length === 0) throw new PlatformError("not_found", `No server of ${config.data} is running.`);
  const lines: string[] = [];
  for (const server of servers) {
    if (!server.restartsEdges)
      throw new PlatformError(
        "conflict",
        `The server with pid ${server.pid} has no edge processes: it was started with BERTH_EDGE_PROCESSES=0, on a machine with one or two cores, or is of an older version.`,
      );
    await exchange(config.data, server);
    lines.push(`${server.url} has new edge processes; the old ones end with their last connection`);
  }
  return lines;
}

async function exchange(dataDir: string, server: ProcessNote): Promise<void> {
  const { pid } = server;
  leaveWish(dataDir, pid, RESTART_EDGES, "edges");
  process.kill(pid, ROTATE_SIGNAL);
  const until = performance.now() + RESTART_MS;
  for (;;) {
    const word = wishFor(dataDir, pid, "edges");
    if (!isRunning(server)) throw new PlatformError("unavailable", `The server with pid ${pid} has ended.`);
    if (word === null) return;
    if (word !== RESTART_EDGES) throw new PlatformError("unavailable", word);
    if (performance.now() > until)
      throw new PlatformError(
        "timeout",
        `The server with pid ${pid} has not replaced its edge processes. Look at its log.`,
      );
    await delay(LOOK_MS);
  }
}
