/**
 * After an upgrade the process that was started first (by a terminal, a service manager, a container) no longer serves,
 * but still represents the server: it passes signals on and exits when the server exits. It replaces its program by
 * this small one, which keeps its pid and frees its memory. The two are connected only by their notes: a later upgrade
 * replaces the server, and never this process.
 */
import { join } from "node:path";
import { execPath } from "node:process";
import { hasNote, identityOf, isRunning, type ProcessIdentity, runningNotes } from "../../lib/process-note.ts";

const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
/** Poll interval. A check reads one small file; without /proc it starts a program, so it is rarer. */
const LOOK_MS = process.platform === "linux" ? 500 : 5000;

/** First argument of the command line that `becomeAttendant` starts. */
export const ATTEND = "attend";

/** Becomes the attendant of a server. Does not return where a process can replace its program. */
export async function becomeAttendant(dataDir: string, root: string, pid: number): Promise<void> {
  if (process.execve) {
    process.removeAllListeners("warning"); // the notice that execve is experimental is noise in the server log
    process.execve(execPath, [execPath, join(root, "bin/berth.js"), ATTEND, dataDir, String(pid)]);
  }
  await attend([dataDir, String(pid)]);
}

export async function attend([dataDir = "", first = ""]: readonly string[]): Promise<void> {
  const own = identityOf(process.pid);
  let server: ProcessIdentity = { pid: Number(first), identity: identityOf(Number(first)) ?? "" };
  let asked: NodeJS.Signals | null = null;
  const passOn = (): void => {
    if (asked && isRunning(server)) process.kill(server.pid, asked);
  };
  for (const signal of SIGNALS)
    process.on(signal, () => {
      asked = signal;
      passOn();
    });
  const ended = Promise.withResolvers<number>();
  const look = setInterval(() => {
    if (isRunning(server)) return;
    const crashed = hasNote(dataDir, server.pid);
    const next = runningNotes(dataDir).find(({ attendant }) => attendant?.identity === own);
    if (!next) return ended.resolve(crashed ? 1 : 0);
    server = next;
    passOn(); // the previous server may already have been stopping when it got the signal
  }, LOOK_MS);
  process.exitCode = await ended.promise;
  clearInterval(look);
}

/** Ends the server when its attendant was killed: a service manager is about to start another one. */
export function endWithAttendant(attendant: ProcessIdentity, end: () => void): void {
  const look = setInterval(() => {
    if (isRunning(attendant)) return;
    clearInterval(look);
    end();
  }, LOOK_MS).unref();
}
