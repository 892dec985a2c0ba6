/**
 * The executable of every sandbox:
 *
 *   sandboxd init  --config FILE [--exec -- CMD ARG...]    PID 1
 *   sandboxd serve --config FILE [--door-listen 127.0.0.1:PORT --door-socket PATH]    the daemon
 *   sandboxd mcp-stdio CMD ARG...    the platform's own workloads; see builtins.ts
 *   sandboxd files     the daemon's helper for files of another user; see user-files/
 *   sandboxd unpack JOB    unpacks the archive on standard input, or at a path; started by a driver, in a cage
 *   sandboxd layer-tar FOLDER [digest]    writes an unpacked layer as a tar; started by a driver
 *   sandboxd install FILE    copies this executable, for a workload that starts from another image
 *   sandboxd sign FILE    makes an empty file, whose owner is the user that the image names
 *   sandboxd version
 */
import type { SandboxdConfig } from "../contract/sandbox-wire.ts";
import { BUILTINS } from "./builtins.ts";
import { readConfig } from "./config.ts";
import { VERSION } from "./version.ts";

const startedAtMs = Date.now();
const OPTIONS = new Set(["--config", "--door-listen", "--door-socket"]);
const USAGE =
  "usage: sandboxd init|serve --config FILE [--door-listen HOST:PORT --door-socket PATH] [--exec -- CMD ARG...]";

// No top-level await: it would rule out compiling to bytecode, which halves the time to start.
main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(`sandboxd: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});

async function main(argv: string[]): Promise<void> {
  const [mode, ...rest] = argv;
  if (mode === "version") return console.log(VERSION);
  const builtin = BUILTINS[mode ?? ""];
  if (builtin) return builtin(rest);
  if (mode === "grep") return (await import("./search/grep-child.ts")).runGrepChild();
  if (mode === "files") return (await import("./files/user/child.ts")).runFilesChild();
  if (mode === "unpack") return (await import("./unpack-child.ts")).runUnpackChild(rest);
  if (mode === "layer-tar") return (await import("./layers/layer-tar.ts")).runLayerTar(rest);
  if (mode === "install") return (await import("./install.ts")).install(rest[0]);
  if (mode === "sign") return (await import("./install.ts")).sign(rest[0]);
  const { file, ...args } = parseArguments(rest);
  if (file === undefined || (mode !== "init" && mode !== "serve")) throw new Error(USAGE);
  const config = withArguments(readConfig(file), args);
  if (mode === "init") (await import("./init/init.ts")).runInit(config, file);
  else
    await (await import("./daemon.ts")).startDaemon(config, startedAtMs, () => withArguments(readConfig(file), args));
}

/** Parsed by hand: the library's parser would cost every sandbox half a megabyte. */
function parseArguments(argv: string[]): Arguments & { file: string | undefined } {
  const values = new Map<string, string>();
  let command: string[] = [];
  for (let i = 0; i < argv.length; i += 1) {
    const name = argv[i] ?? "";
    if (name === "--exec") {
      command = argv.slice(argv[i + 1] === "--" ? i + 2 : i + 1);
      break;
    }
    i += 1;
    const value = argv[i];
    if (!OPTIONS.has(name) || value === undefined) throw new Error(USAGE);
    values.set(name, value);
  }
  const [file, listen, socket] = [...OPTIONS].map((name) => values.get(name));
  return { file, command, listen, socket };
}

interface Arguments {
  command: string[];
  listen: string | undefined;
  socket: string | undefined;
}

/** Arguments override the members of the file with the same meaning. */
function withArguments(config: SandboxdConfig, { command, listen, socket }: Arguments): SandboxdConfig {
  const door = listen && socket ? [{ listen, socket }] : [];
  const exec =
    command.length > 0 ? { statusFile: `${config.stateDir}/exit.json`, ...config.exec, argv: command } : config.exec;
  return { ...config, doors: [...(config.doors ?? []), ...door], ...(exec ? { exec } : {}) };
}
