/**
 * A workload without isolation: the daemon as a plain process of the server's own user, which sees the machine's files
 * and network. Used only when the operator allows it, on machines that can do no better. It has no images, mounts,
 * snapshots or doors.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { PlatformError } from "../../../../contract/errors.ts";
import { SANDBOX_FILES, type SandboxdConfig } from "../../../../contract/sandbox-wire.ts";
import { noteEnd } from "../../common/daemon-config.ts";
import { OUTPUT_FILES } from "../../common/output-file.ts";
import { READY_FD } from "../calls/spawner.ts";
import { type Machine, makeWorkloadDirs } from "../machine/machine.ts";
import { type Launch, writeConfig } from "./launch.ts";
import { BOOT, processStart, saveRecord } from "./record.ts";

const READY_WAIT_MS = 30_000;

/** The home folder and work dir of such a workload. */
export const plainHome = (dir: string): string => join(dir, "home");

export async function launchPlain(machine: Machine, launching: Launch, signal?: AbortSignal): Promise<void> {
  const { dir, record } = launching;
  makeWorkloadDirs(dir, 0);
  mkdirSync(plainHome(dir), { recursive: true });
  saveRecord(dir, record);
  const configFile = join(dir, "host", SANDBOX_FILES.config);
  writeConfig(launching, configOf(launching));
  noteEnd(dir, launching.exec);
  const log = openSync(join(dir, "init.log"), "a", 0o600);
  const child = spawn(join(machine.binDir, "sandboxd"), ["init", "--config", configFile], {
    cwd: plainHome(dir),
    detached: true,
    env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: plainHome(dir) },
    stdio: ["ignore", log, log, "ignore", "ignore", "pipe"],
  });
  closeSync(log);
  // The server itself is the watcher: after an exit while no server runs, the exit code is unknown.
  record.watcher = { pid: process.pid, startTime: processStart(process.pid) ?? "" };
  child.once("exit", (code, name) => {
    const status = Buffer.alloc(8);
    status.writeUInt32LE(name ? constants.signals[name] : (code ?? 0) << 8);
    writeFileSync(join(dir, "exit"), status);
  });
  child.unref();
  const readiness = child.stdio[READY_FD as 4] as Readable;
  const either = AbortSignal.any([AbortSignal.timeout(READY_WAIT_MS), ...(signal ? [signal] : [])]);
  record.pid = child.pid ?? 0;
  record.startTime = processStart(record.pid) ?? "";
  const [word] = await Promise.race([once(readiness, "data", { signal: either }), once(readiness, "end")]);
  readiness.destroy();
  if (word === undefined && !record.command) throw new PlatformError("internal", "The workload did not start.");
  record.phase = "ready";
  record.boot = BOOT;
  saveRecord(dir, record);
}

function configOf({ dir, record, env, exec }: Launch): SandboxdConfig {
  const run = (file: string): string => join(dir, "run", file);
  return {
    apiSocket: run(SANDBOX_FILES.api),
    portSocket: run(SANDBOX_FILES.ports),
    controlSocket: run(SANDBOX_FILES.control),
    stateDir: run("state"),
    logDir: run("log"),
    workDir: plainHome(dir),
    env: { ...env, HOME: plainHome(dir) },
    readyFd: READY_FD,
    drivesFile: join(dir, "host", SANDBOX_FILES.drives),
    ...(record.pooled ? { claimFile: join(dir, "host", SANDBOX_FILES.claim) } : {}),
    ...(exec
      ? {
          exec: {
            argv: exec.argv,
            ...(exec.builtin ? { builtin: exec.builtin } : {}),
            statusFile: run(SANDBOX_FILES.exit),
            stdoutFile: run(OUTPUT_FILES.stdout),
            stderrFile: run(OUTPUT_FILES.stderr),
            onExit: exec.onExit ?? "exit",
            ...(exec.endsAtMs === undefined ? {} : { endsAtFile: join(dir, "host", SANDBOX_FILES.endsAt) }),
          },
        }
      : { processLogs: { stdout: run(OUTPUT_FILES.stdout), stderr: run(OUTPUT_FILES.stderr) } }),
  };
}
