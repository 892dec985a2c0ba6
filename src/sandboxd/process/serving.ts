/** Finds the process that listens on a port, with its command line, work dir and environment. */
import { readFileSync, readlinkSync } from "node:fs";
import type { ServingProcess } from "../../contract/sandbox-wire.ts";
import { listenersOn } from "../network/sockets.ts";
import type { Environment } from "./environment.ts";
import { statOf } from "./tree.ts";

/** Variables of a shell, of npm or of this sandbox's identity, which have no use in another sandbox. */
const NOT_CARRIED = /^(PWD|OLDPWD|SHLVL|_|TERM|HOST|PORT|INIT_CWD|npm_.*|BL_.*)$/;

export function servingProcess(port: number, environment: Environment): ServingProcess | null {
  const holders = new Set(listenersOn(port));
  // Servers that fork share the socket with their children: choose the process whose parent does not hold it.
  const pid = [...holders].find((each) => !holders.has(statOf(each)?.parent ?? 0));
  if (pid === undefined) return null;
  try {
    const words = (file: string): string[] => readFileSync(`/proc/${pid}/${file}`, "utf8").split("\0").slice(0, -1);
    const own = environment.variables();
    const env: Record<string, string> = {};
    for (const line of words("environ")) {
      const equals = line.indexOf("=");
      const [name, value] = [line.slice(0, equals), line.slice(equals + 1)];
      if (equals > 0 && own[name] !== value && !NOT_CARRIED.test(name)) env[name] = value;
    }
    return { argv: words("cmdline"), workDir: readlinkSync(`/proc/${pid}/cwd`), env };
  } catch {
    return null; // the process ended meanwhile
  }
}
