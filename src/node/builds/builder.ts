/** Image builds on this machine: a few at a time, workspaces taking turns, each bounded in time. */
import { PlatformError } from "../../contract/errors.ts";
import { FairQueue } from "../../lib/fair-queue.ts";
import { MINUTE_MS } from "../../lib/time/clock.ts";
import { need } from "../capabilities/need.ts";
import type { Driver } from "../driver.ts";
import type { Logs } from "../logs/log-room.ts";
import { BuildFailed } from "./build-failed.ts";
import type { CacheBook } from "./cache-book.ts";
import { type BuildRequest, type BuiltImage, buildImage } from "./image-build.ts";
import { STEP_PREFIX } from "./step-names.ts";

export interface BuilderOptions {
  driver: Driver;
  logs: Pick<Logs, "append">;
  makeFolder: () => Promise<string>;
  caches: CacheBook;
  shortage: () => string | null;
  /** What the caches of a workspace may hold together; default CACHE_BYTES_MAX. */
  cacheBytesMax?: () => number | undefined;
}

/** For all caches of a workspace. As much as the root of a step: a build takes twice that on the disk at most. */
const CACHE_BYTES_MAX = 8 * 1024 ** 3;

/** Builds on this machine. A build keeps two processors busy. */
const TURNS = { atOnce: 2, atOncePerOwner: 1, waitingMax: 20 };
export const BUILD_MAX_MS = 30 * MINUTE_MS;

/** Failures that nobody has taken: of workloads that were deleted meanwhile. */
const FAILURES_MAX = 1000;

/** A build that waits or goes on. */
interface Going {
  beganMs: number;
  ending: AbortController;
  done: Promise<void>;
}

export class Builder {
  readonly #options: BuilderOptions;
  readonly #turns = new FairQueue(TURNS);
  readonly #going = new Map<string, Going>();
  /** Images of steps and drives of caches that builds use, with the number of those builds. */
  readonly #held = new Map<string, number>();
  readonly #failures = new Map<string, unknown>();
  readonly #stopping = new AbortController();

  constructor(options: BuilderOptions) {
    this.#options = options;
  }

  /** Since when the build goes on or waits; null when there is none of that id. */
  beganAt(id: string): number | null {
    return this.#going.get(id)?.beganMs ?? null;
  }

  /** Refuses a workspace of which too many builds wait. */
  requireTurn(workspace: string): void {
    if (!this.#turns.hasRoom(workspace)) refuseTurn();
  }

  /**
   * Starts work of a build that nobody waits for, unless it goes on already. `work` gets its turn, and handles its own
   * failures.
   */
  begin(id: string, workspace: string, nowMs: number, work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#going.has(id) || this.#stopping.signal.aborted) return;
    const ending = new AbortController();
    const signal = AbortSignal.any([ending.signal, this.#stopping.signal]);
    const turn = this.#turns.run(workspace, () => work(signal));
    if (turn === null) refuseTurn();
    const done = turn.finally(() => this.#going.delete(id));
    done.catch(() => {});
    this.#going.set(id, { beganMs: nowMs, ending, done });
  }

  /** Keeps the reason why a build failed until it is taken. */
  noteFailure(id: string, error: unknown): void {
    this.#failures.set(id, error);
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > FAILURES_MAX && oldest !== undefined) this.#failures.delete(oldest);
  }

  /** Null when the build has not failed, or its failure was taken before. */
  takeFailure(id: string): unknown {
    const failure = this.#failures.get(id) ?? null;
    this.#failures.delete(id);
    return failure;
  }

  /** Ends a build; resolves when nothing of it runs any more. */
  async cancel(id: string): Promise<void> {
    const going = this.#going.get(id);
    going?.ending.abort(new PlatformError("conflict", "The build was cancelled."));
    await going?.done.catch(() => {});
  }

  /** Builds an image; throws BuildFailed. `keep` records it: until that is done, nothing of the build is removed. */
  async build<T>(request: BuildRequest, asked: AbortSignal, keep: (built: BuiltImage) => Promise<T>): Promise<T> {
    const { driver, logs, makeFolder, caches, shortage } = this.#options;
    const limit = AbortSignal.timeout(BUILD_MAX_MS);
    const signal = AbortSignal.any([asked, limit, this.#stopping.signal]);
    const held: string[] = [];
    const hold = (name: string): void => {
      held.push(name);
      this.#held.set(name, (this.#held.get(name) ?? 0) + 1);
    };
    const { log } = request;
    const say = (message: string, severity: number): void => {
      if (log) logs.append(log, [{ message, severity }]);
    };
    try {
      const [building, images] = [await need(driver, "building"), await need(driver, "images")];
      // The cache gives way to what is built now.
      if (shortage() !== null) await this.sweep(() => true);
      const drives = await need(driver, "drives");
      const cacheBytesMax = this.#options.cacheBytesMax?.() ?? CACHE_BYTES_MAX;
      const parts = { driver, building, images, drives, makeFolder, caches, cacheBytesMax, say, shortage, hold };
      const built = await buildImage(request, parts, signal);
      hold(built.name);
      return await keep(built);
    } catch (error) {
      if (limit.aborted && !asked.aborted)
        throw new BuildFailed(`The build took longer than ${BUILD_MAX_MS / MINUTE_MS} minutes.`);
      throw error;
    } finally {
      for (const name of held) {
        const left = (this.#held.get(name) ?? 1) - 1;
        if (left === 0) this.#held.delete(name);
        else this.#held.set(name, left);
      }
    }
  }

  /** Whether a build uses this image or drive, or is about to record it. */
  isHeld(name: string): boolean {
    return this.#held.has(name);
  }

  /** Removes images of steps that no build has used lately. */
  async sweep(isOld: (image: { name: string; createdAt: string }) => boolean): Promise<void> {
    const images = await this.#options.driver.capability("images");
    for (const image of (await images?.list()) ?? []) {
      const name = image.name.replace(/:latest$/, "");
      if (name.startsWith(STEP_PREFIX) && !this.isHeld(name) && isOld({ ...image, name })) await images?.remove(name);
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new PlatformError("unavailable", "The server is stopping."));
    await Promise.allSettled([...this.#going.values()].map(({ done }) => done));
  }
}

function refuseTurn(): never {
  throw new PlatformError(
    "too_many_requests",
    `${TURNS.waitingMax} builds of this workspace wait already. Try again when one has ended.`,
    { headers: { "retry-after": "30" } },
  );
}
