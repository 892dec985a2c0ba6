/** `berth down`: stops the servers of a data folder, as Ctrl-C would. */
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "../contract/errors.ts";
import { isRunning, type ProcessNote, runningNotes } from "../lib/process-note.ts";

/** What is in flight gets ten seconds; a server that takes longer than this hangs. */
const STOP_MS = 30_000;
const LOOK_MS = 50;

/** What to tell the operator. */
export async function stopServers(dataDir: string): Promise<string[]> {
  const notes = runningNotes(dataDir);
  if (notes.length === 0) return [`no server of ${dataDir} is running`];
  for (const { pid } of notes) process.kill(pid, "SIGTERM");
  await Promise.all(notes.map(ended));
  return notes.map(({ pid, url }) => `stopped ${url} (pid ${pid})`);
}

async function ended(note: ProcessNote): Promise<void> {
  const until = performance.now() + STOP_MS;
  while (isRunning(note)) {
    if (performance.now() > until)
      throw new PlatformError(
        "timeout",
        `The server with pid ${note.pid} does not end. Look at its log, or end it with kill -9 ${note.pid}.`,
      );
    await delay(LOOK_MS);
  }
}
