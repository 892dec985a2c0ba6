/** The logs of all workloads of this server: collects, stores and queries them. */
import { join } from "node:path";
import { PlatformError } from "../../contract/errors.ts";
import type { LogTag } from "../../contract/log-line.ts";
import { FairQueue } from "../../lib/fair-queue.ts";
import type { Running } from "../../lib/lifecycle.ts";
import { type Clock, MINUTE_MS } from "../../lib/time/clock.ts";
import type { Driver } from "../driver.ts";
import type { LogLine } from "./log-line.ts";
import { type LogBounds, type LogPage, type LogQuery, openLogStore } from "./log-store.ts";
import { followOwn, loggedDriver } from "./logged-driver.ts";
import { OutputFollower } from "./output-follower.ts";

export interface Logs {
  /** Adds lines of the platform itself to a workload's log. */
  append(tag: LogTag, lines: readonly LogLine[]): void;
  /** Includes everything written until now. */
  query(query: LogQuery): Promise<LogPage>;
  names(workspace: string, plural: string): Promise<string[]>;
  forgetWorkspace(workspace: string): Promise<void>;
}

export interface LogRoom extends Logs, Running {
  /**
   * Wraps the driver, so that workloads created with a tag get a log. `shared`: workloads of other servers may become
   * this server's while it runs.
   */
  listenTo(driver: Driver, shared?: boolean): Promise<Driver>;
}

export interface LogRoomOptions {
  dir: string;
  clock: Clock;
  bounds?: Partial<LogBounds>;
  lastUsedMs?(uid: string): number;
  onError(error: unknown): void;
}

/** Scans at the same time: each has a segment in memory and works through it on the one thread that answers all. */
const SCANS_AT_ONCE = 2;
/** Queries of a workspace that wait for their turn. */
export const SCANS_WAITING_MAX = 32;

/** Interval of the sweep. Logs may exceed the limits of age and total size until the next one. */
const SWEEP_MS = 10 * MINUTE_MS;
const TAKE_MS = MINUTE_MS / 2;

export function openLogRoom({ dir, ...options }: LogRoomOptions): LogRoom {
  const store = openLogStore({ ...options, dir: join(dir, "lines") });
  const follower = new OutputFollower({ ...options, store });
  const scans = new FairQueue({ atOnce: SCANS_AT_ONCE, waitingMax: SCANS_WAITING_MAX });
  // Every server stores the logs of its own workloads, so every server sweeps.
  const sweeping = setInterval(() => void store.sweep().catch(options.onError), SWEEP_MS).unref();
  let taking: NodeJS.Timeout | undefined;
  return {
    append: (tag, lines) => store.append(tag, lines),
    async query(query) {
      const read = async (): Promise<LogPage> => {
        await follower.lookAt(query);
        return store.query(query);
      };
      return scans.run(query.workspace, read) ?? refuseScan();
    },
    names: (workspace, plural) => store.names(workspace, plural),
    forgetWorkspace: (workspace) => store.forgetWorkspace(workspace),
    listenTo(driver, shared = false) {
      const follow = (): Promise<unknown> => followOwn({ driver, store, follower });
      if (shared) taking = setInterval(() => void follow().catch(options.onError), TAKE_MS).unref();
      return loggedDriver({ driver, store, follower, dir: join(dir, "followed") });
    },
    async stop() {
      clearInterval(sweeping);
      clearInterval(taking);
      await follower.stop();
      await store.stop();
    },
  };
}

function refuseScan(): never {
  const message = `${SCANS_WAITING_MAX} log queries of this workspace wait already. Ask again when they are answered.`;
  throw new PlatformError("too_many_requests", message, { headers: { "retry-after": "1" } });
}
