/** Runs test files side by side, each in a process of its own (`file-run.ts`), and prints each as it ends. */
import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { type FileRun, type Limits, runFile } from "./file-run.ts";
import type { Outcome } from "./outcome.ts";
import { fileReport } from "./report.ts";

export interface RunOptions {
  files: readonly string[];
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
  files,
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
    while (next < files.length && !signal.aborted) {
      const index = next;
      next += 1;
      const file = files[index] as string;
      const run = runFile({ file, folder: join(folder, index.toString(36)), env, limits, preload });
      running.add(run);
      const outcome = await run.done;
      running.delete(run);
      outcomes.push(outcome);
      print(fileReport(outcome));
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
