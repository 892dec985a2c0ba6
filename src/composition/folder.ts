/** The data folder becomes this process's own, and says which node this is. */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import type { Config } from "../config.ts";
import { makeRoomToStart } from "../lib/disk/disk-reserve.ts";
import type { Stack } from "../lib/lifecycle.ts";
import { type Clock, toIso } from "../lib/time/clock.ts";
import { identityOf, type NodeIdentity } from "../node/identity.ts";
import { lockDataFolder } from "../store/database/data-lock.ts";

export function takeFolder(config: Config, clock: Clock, stack: Stack): NodeIdentity {
  makeRoomToStart(config.data);
  stack.add(lockDataFolder(config.data, `pid ${process.pid}, started ${toIso(clock.now())}`));
  return identityOf({
    dataDir: config.data,
    name: config.node_name,
    machineName: hostname(),
    olderId: `${hostname()}/${createHash("sha256").update(config.data).digest("hex").slice(0, 8)}`,
  });
}

/** The same after a restart of the server, and another for every copy of the folder. */
export function nameOfFolder(dataDir: string): string {
  const { dev, ino } = statSync(dataDir);
  return `${bootOfMachine()}/${dev}/${ino}`;
}

/** A container gets another host name with every start; the kernel below keeps its own. */
function bootOfMachine(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return hostname(); // not Linux
  }
}
