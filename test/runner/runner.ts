/** Runs test files side by side, in a process each or some in one (`file-run.ts`), and prints them as they end. */
import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { type FileRun, type Limits, runTogether } from "./file-run.ts";
import type { Outcome } from "./outcome.ts";
import { fileReport } from "./report.ts";

export interface RunOptions {
  /** The files of each process, in the order in which they are begun. */
  processes: readonly (readonly string[])[];
  lanes: number;
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
  const lane = async (): Promise<void> => {
    while (next < processes.length && !signal.aborted) {
      const index = next;
      next += 1;
      const files = processes[index] as string[];
      const run = runTogether({ files, folder: join(folder, index.toString(36)), env, limits, preload });
      running.add(run);
      const ended = await run.done;
      running.delete(run);
      outcomes.push(...ended);
      for (const outcome of ended) print(fileReport(outcome));
    }
  };
  try {
    await Promise.all(Array.from({ length: lanes }, lane));
  } finally {
    signal.removeEventListener("abort", abort);
    await removeTree(folder);
  }
  return outcomes;
}
