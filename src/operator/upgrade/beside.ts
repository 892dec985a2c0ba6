/** A server of another version, started beside this process: loaded, but not serving yet. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** Time for a failed new server to exit by itself. */
const END_MS = 20_000;

/** `fd` is a listening socket to take over; absent: the version is only tried. */
export function startBeside(root: string, args: readonly string[], fd?: number): ChildProcess {
  return spawn(nodeFor(root), [join(root, "bin/berth.js"), "up", "--take-over", ...args], {
    stdio: ["inherit", "inherit", "inherit", "ipc", ...(fd === undefined ? [] : [fd])],
  });
}

/** The Node that a later start will use: that of the new installation, if this process uses its own installation's. */
function nodeFor(root: string): string {
  const own = join(root, "node_modules/.bin/node");
  return process.execPath.includes("/node_modules/") && existsSync(own) ? own : process.execPath;
}

/** Resolves when the process is gone. */
export async function endBeside(child: ChildProcess, { atOnce }: { atOnce: boolean }): Promise<void> {
  const exited = new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) resolve();
    else child.once("exit", () => resolve());
  });
  if (!atOnce) await Promise.race([exited, delay(END_MS, undefined, { ref: false })]);
  child.kill("SIGKILL");
  await exited;
}
