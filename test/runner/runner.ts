/** Runs test files side by side, in a process each or some in one (`file-run.ts`), and prints them as they end. */
import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { type FileRun, type Limits, runTogether } from "./file-run.ts";
import { isIdle as isMachineIdle } from "./idle.ts";
import type { Outcome } from "./outcome.ts";
import { fileReport } from "./report.ts";

export interface RunOptions {
  /** The files of each process, in the order in which they are begun. */
  processes: readonly (readonly string[])[];
  /** Processes that run side by side, whatever the machine does. */
  lanes: number;
  /** Further ones, each begun while the machine is idle: files wait for processes and timers now and then. */
  spareLanes?: number;
  isIdle?(): Promise<boolean>;
  env: NodeJS.ProcessEnv;
  limits: Limits;
  /** Modules that every file loads first. */
  preload?: readonly string[];
  print(text: string): void;
  /** Ends the run: what is under way is ended, what waits is not begun. */
  signal: AbortSignal;
}

export async function runFiles({
  processes,
  lanes,
  spareLanes = 0,
  isIdle = isMachineIdle,
  env,
  limits,
  preload = [],
  print,
  signal,
}: RunOptions): Promise<Outcome[]> {
  // Short, because sockets lie below it; open to walk through, because databases and sandboxes have other users.
  const folder = mkdtempSync(join(tmpdir(), "bt"));
  chmodSync(folder, 0o755);
  const outcomes: Outcome[] = [];
  const running = new Set<FileRun>();
  const abort = (): void => {
    for (const run of running) run.abort();
  };
  signal.addEventListener("abort", abort);
  let next = 0;
  const isMore = (): boolean => next < processes.length && !signal.aborted;
  const runNext = async (): Promise<void> => {
    const index = next;
    next += 1;
    const files = processes[index] as string[];
    const run = runTogether({ files, folder: join(folder, index.toString(36)), env, limits, preload });
    running.add(run);
    const ended = await run.done;
    running.delete(run);
    outcomes.push(...ended);
    for (const outcome of ended) print(fileReport(outcome));
  };
  const lane = async (): Promise<void> => {
    while (isMore()) await runNext();
  };
  const spare = async (): Promise<void> => {
    const begun = new Set<Promise<void>>();
    while (spareLanes > 0 && isMore()) {
      if (!(await isIdle()) || begun.size === spareLanes || !isMore()) continue;
      const run = runNext().finally(() => begun.delete(run));
      begun.add(run);
    }
    await Promise.all(begun);
  };
  try {
    await Promise.all([...Array.from({ length: lanes }, lane), spare()]);
  } finally {
    signal.removeEventListener("abort", abort);
    await removeTree(folder);
  }
  return outcomes;
}
