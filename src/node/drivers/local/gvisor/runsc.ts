/** The executable of gVisor, and the arguments that every command of it shares. */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { STAGE } from "./vm-stage.ts";

const TOOL_DIRS = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const NAME = "runsc";

/** Null where it is not installed. `path`: the operator's choice. */
export function findRunsc(path?: string): string | null {
  const candidates = path === undefined ? TOOL_DIRS.map((dir) => join(dir, NAME)) : [path];
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 *   overlay2=none      what is written goes to the files of the workload, which outlive it and can be copied
 *   host-uds=all       the daemon's sockets in the shared folder, and the platform's doors
 *   ignore-cgroups     the process has joined the workload's control groups before
 */
const FLAGS = ["--overlay2=none", "--host-uds=all", "--ignore-cgroups", "--net-raw=false", "--net-disconnect-ok"];

/** `sandbox`: gVisor's network stack has the interfaces of its namespace; `none`: only a loopback. */
export type VmNetwork = "sandbox" | "none";

export const runscArguments = (network: VmNetwork, command: string[]): string[] => [
  NAME,
  `--root=${STAGE.state}`,
  `--network=${network}`,
  ...FLAGS,
  ...command,
];
