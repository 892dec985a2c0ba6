/**
 * After an upgrade the process that was started first (by a terminal, a service manager, a container) no longer serves,
 * but it still stands for the server: it passes signals on, and ends when the server ends. It replaces its program by
 * this small one, so that it keeps its number and gives its memory back. Nothing ties the two but their notes: an
 * upgrade later changes the server, and never this process.
 */
import { join } from "node:path";
import { execPath } from "node:process";
import { hasNote, identityOf, isRunning, type ProcessIdentity, runningNotes } from "../../lib/process-note.ts";

const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
/** A look reads one small file; where there is no /proc it starts a program. */
const LOOK_MS = process.platform === "linux" ? 500 : 5000;

/** The first word of the command line that `becomeAttendant` starts. */
export const ATTEND = "attend";

/** Goes on as the attendant of a server. Does not return where a process can replace its program. */
export async function becomeAttendant(dataDir: string, root: string, pid: number): Promise<void> {
  if (process.execve) {
    process.removeAllListeners("warning"); // that it is experimental interests nobody who reads the server's log
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
    passOn(); // the server before may have been on its way out when it got the signal
  }, LOOK_MS);
  process.exitCode = await ended.promise;
  clearInterval(look);
}

/** A server whose attendant was killed ends too: whoever watches the attendant is about to start another one. */
export function endWithAttendant(attendant: ProcessIdentity, end: () => void): void {
  const look = setInterval(() => {
    if (isRunning(attendant)) return;
    clearInterval(look);
    end();
  }, LOOK_MS).unref();
}
