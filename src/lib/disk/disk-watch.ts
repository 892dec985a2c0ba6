/**
 * Knows whether the data folder's file system has room for new work. Below `freeMinBytes` new work is refused, so that
 * running workloads and the platform keep the rest. The log gets one line when that begins and one when it ends.
 */
import { statfsSync } from "node:fs";
import type { Running } from "../lifecycle.ts";
import { SECOND_MS } from "../time/clock.ts";
import { fillReserve, giveUpSlice, slicesLeft } from "./disk-reserve.ts";

export interface DiskWatchOptions {
  dataDir: string;
  /** Bytes that new work must leave free; 0 = never refuse. */
  freeMinBytes: number;
  /** Size of the reserve in bytes; 0 = none. */
  reserveBytes: number;
  log: { error(fields: object, message: string): void; info(fields: object, message: string): void };
}

export interface DiskWatch extends Running {
  /** Why new work is refused now; null while there is room. Costs one statfs call, a few microseconds. */
  shortage(): string | null;
  /** Whether the platform itself can still write: there is free space, or a slice of the reserve. */
  canWrite(): boolean;
  /** Gives up a slice of the reserve. Returns false when none is left. */
  makeRoom(): boolean;
}

const LOOK_MS = 5 * SECOND_MS;
/** Fewest free inodes for new work: a sandbox with a small project has thousands of files. */
const INODES_MIN = 1000;
/** The reserve is filled again when this multiple of the refusal limit is free. */
const REFILL_FACTOR = 2;
const MB = 2 ** 20;

export function watchDisk({ dataDir, freeMinBytes, reserveBytes, log }: DiskWatchOptions): DiskWatch {
  let told: string | null = null;
  let filling: Promise<void> | null = null;

  const look = () => {
    const { bavail, bsize, ffree, files } = statfsSync(dataDir);
    // File systems that create inodes on demand report 0.
    return { freeBytes: bavail * bsize, freeInodes: files > 0 ? ffree : Number.POSITIVE_INFINITY };
  };
  const shortage = (): string | null => {
    if (freeMinBytes === 0) return null;
    const { freeBytes, freeInodes } = look();
    const minMb = Math.round(freeMinBytes / MB);
    if (freeBytes < freeMinBytes)
      return `The disk of the data folder is nearly full: ${Math.floor(freeBytes / MB)} MB are free, ${minMb} MB must be.`;
    if (freeInodes < INODES_MIN)
      return `The disk of the data folder is nearly full: ${freeInodes} files can still be made, ${INODES_MIN} must be possible.`;
    return null;
  };
  const refill = (): void => {
    const { freeBytes, freeInodes } = look();
    const isRoomy =
      freeBytes > REFILL_FACTOR * (freeMinBytes + reserveBytes) && freeInodes > REFILL_FACTOR * INODES_MIN;
    if (reserveBytes === 0 || filling || !isRoomy) return;
    filling = fillReserve(dataDir, reserveBytes)
      .catch((error: unknown) => log.error({ err: error }, "the reserve on the disk could not be made"))
      .finally(() => {
        filling = null;
      });
  };
  const tick = (): void => {
    try {
      const found = shortage();
      if (found && !told)
        log.error({ ...look(), reserveLeft: slicesLeft(dataDir) }, `new work is refused. ${found} Delete something.`);
      if (!found && told) log.info(look(), "the disk has room again; new work is taken");
      told = found;
      if (!found) refill();
    } catch (error) {
      log.error({ err: error }, "the disk of the data folder cannot be looked at");
    }
  };
  const timer = setInterval(tick, LOOK_MS).unref();

  return {
    shortage() {
      const found = shortage();
      // Log the first refusal at once, not at the next tick.
      if ((found === null) !== (told === null)) tick();
      return found;
    },
    canWrite() {
      const { freeBytes, freeInodes } = look();
      return (freeBytes > 0 && freeInodes > 0) || slicesLeft(dataDir) > 0;
    },
    makeRoom() {
      const given = giveUpSlice(dataDir);
      log.error({ reserveLeft: slicesLeft(dataDir) }, given ? GIVEN_UP : NOTHING_LEFT);
      return given;
    },
    async stop() {
      clearInterval(timer);
      await filling;
    },
  };
}

const GIVEN_UP = "the disk is full; a part of the reserve was given up to write";
const NOTHING_LEFT = "the disk is full and nothing is left of the reserve: nothing can be written until space is freed";
