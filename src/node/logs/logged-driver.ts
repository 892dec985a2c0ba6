/**
 * A driver whose workloads have a log: whatever is created with a tag is followed until it is destroyed, and its last
 * words are taken before its files go. The next life of the server follows on by what the driver remembers, or by a note
 * on disk per workload.
 */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LogTag } from "../../contract/log-line.ts";
import type { DestroyOptions, Driver } from "../driver.ts";
import { forwardingDriver } from "../forwarding-driver.ts";
import type { WorkloadSpec } from "../workload.ts";
import type { LogStore } from "./log-store.ts";
import type { OutputFollower } from "./output-follower.ts";

export interface LoggedDriverOptions {
  driver: Driver;
  store: LogStore;
  follower: OutputFollower;
  /** Where the notes are. */
  dir: string;
}

/** Follows what the driver says is this server's, also what became this server's meanwhile. */
export async function followOwn({ driver, store, follower }: Omit<LoggedDriverOptions, "dir">): Promise<Set<string>> {
  const known = (await driver.list()).flatMap(({ uid, log }) => (log ? [{ uid, log }] : []));
  for (const { uid, log } of known) follower.follow(uid, log, driver, await store.positions(log, uid));
  return new Set(known.map(({ uid }) => uid));
}

export async function loggedDriver({ driver, store, follower, dir }: LoggedDriverOptions): Promise<Driver> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  /** Who has a note. */
  const noted = new Set<string>();
  const note = (uid: string): string => join(dir, encodeURIComponent(uid));

  // What an earlier life has left; most drivers know whose it is.
  const remembered = await followOwn({ driver, store, follower });
  for (const name of await readdir(dir)) {
    const uid = decodeURIComponent(name);
    const tag = await readNote(note(uid));
    if (tag && !remembered.has(uid) && (await driver.observe(uid))) {
      noted.add(uid);
      follower.follow(uid, tag, driver, await store.positions(tag, uid));
    } else await rm(note(uid), { force: true });
  }

  const takeNote = (uid: string, tag: LogTag): Promise<void> => {
    noted.add(uid);
    return writeFile(note(uid), JSON.stringify(tag), { mode: 0o600 });
  };

  return {
    ...forwardingDriver({ name: driver.name, node: driver.node, target: () => driver }),
    async create(spec: WorkloadSpec, options) {
      if (!spec.log) return driver.create(spec, options);
      const observed = await driver.create(spec, options);
      // A command alone is ended by the next life, and its driver remembers what is left of it.
      if (!observed.log && !spec.exec?.alone) await takeNote(spec.uid, spec.log);
      follower.follow(spec.uid, spec.log, driver);
      return observed;
    },
    async destroy(uid: string, options: DestroyOptions = {}) {
      await driver.destroy(uid, { ...options, ended: () => follower.finish(uid) });
      follower.drop(uid);
      if (noted.delete(uid)) await rm(note(uid), { force: true });
    },
  };
}

/** null: it was torn by a crash; that workload's log ends there. */
async function readNote(file: string): Promise<LogTag | null> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as LogTag;
  } catch {
    return null;
  }
}
