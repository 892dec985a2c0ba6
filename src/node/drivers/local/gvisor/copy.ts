/**
 * A workload in gVisor as a copy of another one: the parts of a snapshot beside the layers of its root.
 *
 *   memory/   as `runsc checkpoint` wrote it
 *   run/      the folder shared with the workload: programs inside have files of it open
 */
import { execFile } from "node:child_process";
import { linkSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { CopyTree } from "../storage/tree-copy.ts";
import { memoryDir, WHOLE } from "./bundle.ts";

const run = promisify(execFile);

const MEMORY = "memory";
const SHARED = "run";
const BLOCK_BYTES = 512;

/** Copies the files that belong to the memory but not to the root; returns their size. */
export const keepShared = (workload: string, snapshot: string, copy: CopyTree): Promise<number> =>
  copy(join(workload, SHARED), join(snapshot, SHARED));

/** Moves the memory into the snapshot; returns its size. */
export function keepMemory(written: string, snapshot: string): number {
  renameSync(written, join(snapshot, MEMORY));
  return sizeOf(join(snapshot, MEMORY));
}

/** Shares the memory of a workload that sleeps on disk with the snapshot; returns its size. */
export function shareMemory(workload: string, snapshot: string): number {
  linkAll(join(memoryDir(workload), WHOLE), join(snapshot, MEMORY));
  return sizeOf(join(snapshot, MEMORY));
}

/** Gives a new workload its part of the snapshot. No byte of the memory is copied: runsc only reads it. */
export async function layOutCopy(snapshot: string, workload: string): Promise<void> {
  mkdirSync(memoryDir(workload), { recursive: true, mode: 0o700 });
  linkAll(join(snapshot, MEMORY), join(memoryDir(workload), WHOLE));
  // gVisor compares times of change with those in the memory, to the nanosecond; Node's own copy rounds them.
  await run("cp", ["-a", "-T", join(snapshot, SHARED), join(workload, SHARED)]);
}

/** Of a snapshot that no record names any more; its layers may still be in use. */
export function forgetCopy(snapshot: string): void {
  for (const name of [MEMORY, SHARED]) rmSync(join(snapshot, name), { recursive: true, force: true });
}

function linkAll(from: string, to: string): void {
  mkdirSync(to, { mode: 0o700 });
  for (const name of readdirSync(from)) linkSync(join(from, name), join(to, name));
}

const sizeOf = (dir: string): number =>
  readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).blocks * BLOCK_BYTES, 0);
