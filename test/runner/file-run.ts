/**
 * One test file, or some that share it, in a process, a process group and a temporary folder of their own. A file that
 * does not end is ended with everything it started, and what held it is told; the run goes on with the next process.
 */
import { spawn } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { ControlGroups } from "./control-groups.ts";
import { readEvents } from "./events.ts";
import { HEAP_FLAGS } from "./heap-flags.ts";
import { reportFlags, unfinished, whatHolds } from "./held.ts";
import { endGroup, endProcess, processesOf, takeLeftBehind } from "./left-behind.ts";
import type { Outcome } from "./outcome.ts";
import { outcomesOf } from "./shared-outcome.ts";

export interface Limits {
  /** For one test, as Node's own runner counts it. */
  testMs: number;
  /** For the whole file. */
  fileMs: number;
  /** From the last test's end to the end of the process: whatever is open then was forgotten. */
  lingerMs: number;
  /** For processes that were told to end and have not yet. */
  graceMs: number;
}

export interface FileRun {
  /** One per file. */
  done: Promise<Outcome[]>;
  /** Ends it at once, with everything it started. */
  abort(): void;
}

const LOOK_MS = 1_000;

export interface FileRunOptions {
  files: readonly string[];
  /** A folder for this process alone; removed at the end. Its path is short: unix sockets lie below it. */
  folder: string;
  env: NodeJS.ProcessEnv;
  limits: Limits;
  preload: readonly string[];
}

export function runTogether({ files, folder, env, limits, preload }: FileRunOptions): FileRun {
  const [temporary, notes] = [join(folder, "t"), join(folder, "r")];
  for (const made of [folder, temporary, notes]) mkdirSync(made, { recursive: true });
  chmodSync(temporary, 0o1777); // like /tmp: tests start processes of other users too
  const [eventsPath, outputPath] = [join(notes, "events"), join(notes, "output")];
  const output = openSync(outputPath, "a");
  const started = performance.now();
  const flags = [
    `--test-timeout=${limits.testMs}`,
    `--test-reporter=${join(import.meta.dirname, "events.ts")}`,
    `--test-reporter-destination=${eventsPath}`,
    ...reportFlags(notes),
    ...HEAP_FLAGS,
    ...preload.map((module) => `--import=${module}`),
  ];
  const entry = files.length > 1 ? [join(import.meta.dirname, "together.ts")] : [];
  const child = spawn(process.execPath, [...flags, ...entry, ...files], {
    detached: true, // a group of its own, which ends as a whole
    stdio: ["ignore", output, output],
    // A runner that was itself started by a test hands its context down; the file would then report to that one.
    env: { ...env, TMPDIR: temporary, NODE_TEST_CONTEXT: undefined },
  });
  closeSync(output);
  const group = child.pid ?? 0;
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("error", () => resolve({ code: 127, signal: null }));
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
  let ended: string | null = null;
  const groups = new ControlGroups(temporary);
  const watching = watch();

  async function watch(): Promise<void> {
    let quietSince = performance.now();
    let seen = 0;
    while (child.exitCode === null && child.signalCode === null) {
      await Promise.race([exited, later(LOOK_MS)]);
      groups.look();
      const size = sizeOf(eventsPath);
      const now = performance.now();
      if (size !== seen) [seen, quietSince] = [size, now];
      const tooLong = now - started > limits.fileMs;
      const lingering = seen > 0 && now - quietSince > limits.lingerMs && unfinished(textOf(eventsPath)).length === 0;
      if (!tooLong && !lingering) continue;
      const held = await whatHolds(group, notes, textOf(eventsPath));
      if (child.exitCode !== null || child.signalCode !== null) return;
      const seconds = Math.round((tooLong ? limits.fileMs : limits.lingerMs) / 1000);
      const what = tooLong ? `did not end within ${seconds} s` : `did not end for ${seconds} s after its last test`;
      ended = `${files.join(", ")} ${what} and was ended\n${held}`;
      endGroup(group);
      return;
    }
  }

  /** A file that was ended had no chance to clean up: what it leaves is removed, but is not its fault. */
  async function leftBehind(): Promise<string[]> {
    if (ended) for (const pid of processesOf({ group, folder: temporary })) endProcess(pid);
    const left = await takeLeftBehind(group, temporary, limits.graceMs);
    return ended ? [] : left;
  }

  const done = exited.then(async ({ code, signal }) => {
    await watching;
    const durationMs = performance.now() - started;
    const left = await leftBehind();
    groups.remove();
    const [events, written] = [readEvents(textOf(eventsPath)), textOf(outputPath)];
    rmSync(notes, { recursive: true, force: true });
    return outcomesOf({ files, durationMs, events, output: written, leftBehind: left, code, signal, ended });
  });
  return { done, abort: () => endGroup(group) };
}

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // it was never written
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
