/** Puts the daemon's executable into the folder that every workload sees. */
import { renameSync, rmSync, statSync } from "node:fs";
import { putProgram } from "../../../lib/disk/put-program.ts";

/** Replaced by rename: running workloads keep the old executable, the next daemon to start uses the new one. */
export function installDaemon(from: string, to: string): void {
  const [source, target] = [statSync(from), statSync(to, { throwIfNoEntry: false })];
  if (target?.ino === source.ino || (target?.size === source.size && target.mtimeMs >= source.mtimeMs)) return;
  rmSync(`${to}.new`, { force: true });
  putProgram(from, `${to}.new`);
  renameSync(`${to}.new`, to);
}
