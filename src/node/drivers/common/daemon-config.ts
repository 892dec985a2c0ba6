/**
 * The daemon inside a workload as every driver with shared folders starts it. A workload has two folders of the machine:
 * run/, which both sides write, and host/, which only the platform writes.
 */
import { renameSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type DriveMount,
  SANDBOX_FILES,
  SANDBOX_RUN_DIR,
  SANDBOXD_RUNTIME_ENV,
  type SandboxdConfig,
  type SandboxUser,
} from "../../../contract/sandbox-wire.ts";
import {
  EGRESS_DOOR_PORT,
  type Exec,
  type Mount,
  type NetworkClass,
  PIDS_DEFAULT,
  PLATFORM_DOOR_PORT,
} from "../../workload.ts";
import { OUTPUT_FILES } from "./output-file.ts";

/** Path inside of the folder that only the platform writes. */
export const HOST_DIR = `${SANDBOX_RUN_DIR}/host`;
/** Path inside of the folder with the daemon's executable. */
export const BIN_DIR = `${SANDBOX_RUN_DIR}/bin`;
export const EGRESS_SOCKET = "egress.sock";
/** Environment of PID 1; processes of the workload get the workload's own. */
export const INIT_ENV = Object.entries({
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  ...SANDBOXD_RUNTIME_ENV,
}).map(([name, value]) => `${name}=${value}`);
export const INIT_ARGV = [`${BIN_DIR}/sandboxd`, "init", "--config", `${HOST_DIR}/${SANDBOX_FILES.config}`];
/** Path at which programs made for such sandboxes look for the FIFO. */
export const AWAKE_FIFO = "/uk/libukp/scale_to_zero_disable";

export interface Daemon {
  network: NetworkClass;
  pids: number | undefined;
  env: Record<string, string>;
  workDir: string;
  user?: SandboxUser | undefined;
  exec?: Exec | undefined;
  /** The image's own command, for an `exec` that names none. */
  imageArgv: string[];
  /** The workload has no name server, so the daemon answers for names below localhost. */
  ownNames: boolean;
  /** The workload waits in a pool, and its owner's environment comes later in the claim file. */
  pooled: boolean;
  readyFd?: number | undefined;
  /** See `SandboxdConfig.generation`. */
  generation?: string | undefined;
}

export function daemonConfig(daemon: Daemon): SandboxdConfig {
  const { network, env, workDir, user, exec, imageArgv, ownNames, pooled, readyFd, generation } = daemon;
  const doors = [{ listen: `127.0.0.1:${PLATFORM_DOOR_PORT}`, socket: `${HOST_DIR}/${SANDBOX_FILES.platform}` }];
  if (network === "outbound") {
    doors.push({ listen: `127.0.0.1:${EGRESS_DOOR_PORT}`, socket: `${HOST_DIR}/${EGRESS_SOCKET}` });
  }
  const output = {
    stdout: `${SANDBOX_RUN_DIR}/${OUTPUT_FILES.stdout}`,
    stderr: `${SANDBOX_RUN_DIR}/${OUTPUT_FILES.stderr}`,
  };
  const command = exec && {
    argv: exec.argv.length > 0 ? exec.argv : imageArgv,
    ...(exec.builtin ? { builtin: exec.builtin } : {}),
    statusFile: `${SANDBOX_RUN_DIR}/${SANDBOX_FILES.exit}`,
    stdoutFile: output.stdout,
    stderrFile: output.stderr,
    onExit: exec.onExit ?? "exit",
    ...(exec.endsAtMs === undefined ? {} : { endsAtFile: `${HOST_DIR}/${SANDBOX_FILES.endsAt}` }),
  };
  return {
    apiSocket: `${SANDBOX_RUN_DIR}/${SANDBOX_FILES.api}`,
    portSocket: `${SANDBOX_RUN_DIR}/${SANDBOX_FILES.ports}`,
    controlSocket: `${SANDBOX_RUN_DIR}/${SANDBOX_FILES.control}`,
    stateDir: `${SANDBOX_RUN_DIR}/state`,
    workDir,
    env,
    ...(user ? { user } : {}),
    doors,
    ...(ownNames ? { names: "127.0.0.1:53" } : {}),
    ...(readyFd === undefined ? {} : { readyFd }),
    drivesFile: `${HOST_DIR}/${SANDBOX_FILES.drives}`,
    ...(pooled ? { claimFile: `${HOST_DIR}/${SANDBOX_FILES.claim}` } : {}),
    awakeFifo: AWAKE_FIFO,
    upgradeFile: `${BIN_DIR}/sandboxd`,
    asleepFile: `${HOST_DIR}/${SANDBOX_FILES.asleep}`,
    ...(generation === undefined ? {} : { generation }),
    generationFile: `${SANDBOX_RUN_DIR}/${SANDBOX_FILES.generation}`,
    processesMax: commandsMax(daemon.pids ?? PIDS_DEFAULT),
    ...(command ? { exec: command } : { processLogs: output }),
  };
}

/** Processes left to commands. The rest is reserved for the daemon, which exits when it cannot start a thread. */
const commandsMax = (pids: number): number => pids - Math.min(64, Math.ceil(pids / 16));

/** Writes the end time before any process starts, so that the command never runs without it. */
export function noteEnd(dir: string, exec: Exec | undefined): void {
  if (exec?.endsAtMs === undefined) return;
  writeFileSync(join(dir, "host", SANDBOX_FILES.endsAt), "");
  setEnd(dir, exec.endsAtMs);
}

export const setEnd = (dir: string, endsAtMs: number): void =>
  utimesSync(join(dir, "host", SANDBOX_FILES.endsAt), endsAtMs / 1000, endsAtMs / 1000);

/** Writes the answer of GET /drives/mount inside the workload. */
export function saveDrives(dir: string, mounts: Mount[]): void {
  const drives: DriveMount[] = mounts.flatMap(({ source, path, readOnly, name, platform }) =>
    "drive" in source && !platform
      ? [
          {
            driveName: name ?? source.drive,
            mountPath: path,
            drivePath: source.path ?? "/",
            readOnly: readOnly ?? false,
          },
        ]
      : [],
  );
  const file = join(dir, "host", SANDBOX_FILES.drives);
  writeFileSync(`${file}.new`, JSON.stringify(drives));
  renameSync(`${file}.new`, file);
}
