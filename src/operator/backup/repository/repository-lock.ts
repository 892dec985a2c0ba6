/**
 * One writer for each repository: another one could remove a chunk that this one counts on. The lock says who holds it
 * and when that process was last alive. A lock of a process that is gone is taken over.
 */
import { hostname } from "node:os";
import { PlatformError } from "../../../contract/errors.ts";
import { isRunning, ownIdentity, type ProcessIdentity } from "../../../lib/process-note.ts";
import { MINUTE_MS } from "../../../lib/time/clock.ts";
import type { Place } from "./place.ts";

export interface RepositoryLock {
  release(): Promise<void>;
}

interface Holder extends ProcessIdentity {
  host: string;
  /** Last sign of life. */
  atMs: number;
}

const SIGN_MS = MINUTE_MS;
/** A holder on another machine without a sign of life for this long counts as dead. */
const SILENCE_MAX_MS = 15 * MINUTE_MS;

export async function holdLock(place: Place, key: string): Promise<RepositoryLock> {
  const sign = (): Buffer =>
    Buffer.from(JSON.stringify({ ...ownIdentity(), host: hostname(), atMs: Date.now() } satisfies Holder));
  while (!(await place.putNew(key, sign()))) {
    const held = await place.get(key);
    if (held === null) continue;
    const holder = holderIn(held);
    if (holder && isAlive(holder))
      throw new PlatformError(
        "conflict",
        `Another backup is being written to ${place.shown}, by process ${holder.pid} on ${holder.host}. Try again when it has ended.`,
      );
    await place.remove(key);
  }
  const timer = setInterval(() => void place.put(key, sign()).catch(() => {}), SIGN_MS); // the next sign may succeed
  timer.unref();
  return {
    async release() {
      clearInterval(timer);
      await place.remove(key);
    },
  };
}

function isAlive(holder: Holder): boolean {
  if (holder.host === hostname()) return isRunning(holder);
  return Date.now() - holder.atMs < SILENCE_MAX_MS;
}

/** Null for a lock that was cut off. */
function holderIn(bytes: Buffer): Holder | null {
  try {
    return JSON.parse(bytes.toString("utf8")) as Holder;
  } catch {
    return null;
  }
}
