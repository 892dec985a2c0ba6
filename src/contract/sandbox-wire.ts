/**
 * What the platform and the daemon inside a sandbox say to each other. No dependency and no behaviour beyond a few
 * lines of text: the gateway and the drivers run it on Node, the daemon compiles it into its executable.
 *
 * Start: `sandboxd init --config FILE` is PID 1 of the sandbox's pid namespace. It starts the daemon beside it
 * (`sandboxd serve --config FILE`), restarts it when it dies, reaps orphans and forwards SIGTERM.
 * `sandboxd init --config FILE --exec -- CMD ARG...` also runs one foreground command, like `exec` in the file.
 *
 * Three unix sockets, each with one kind of client:
 *   api      HTTP/1.1, the in-sandbox API. Tenants reach it through the gateway.
 *   ports    the port door: one preface line, then raw bytes to a port inside the sandbox.
 *   control  HTTP/1.1, for the driver alone; never reachable for a tenant (see CONTROL).
 *
 * The sandbox's root can unlink or replace whatever lies in a folder shared with it. Whoever dials from outside must
 * therefore never follow a symbolic link there: open with O_PATH | O_NOFOLLOW, check that it is a socket, and connect
 * to /proc/self/fd/N.
 */

/**
 * Options of the daemon's runtime: a small heap; machine code only for what runs thousands of times, since most daemons
 * answer a few requests and rest; no collector by the clock and no hurry to give pages back, since the daemon does both
 * when it comes to rest. init passes them on to the daemon by itself; whoever starts init saves more by putting them into its environment. Workloads never
 * see them.
 */
export const SANDBOXD_RUNTIME_ENV = {
  BUN_JSC_forceMiniVMMode: "1",
  BUN_JSC_thresholdForJITAfterWarmUp: "50000",
  BUN_JSC_thresholdForJITSoon: "50000",
  BUN_JSC_numberOfGCMarkers: "1",
  BUN_GC_TIMER_DISABLE: "1",
  MIMALLOC_PURGE_DELAY: "1000",
} as const;

/** Where the folder shared by the platform and one sandbox is seen inside the sandbox. */
export const SANDBOX_RUN_DIR = "/run/berth";

/** Names inside that folder. `platform` is the platform's own socket, bound into it for the doors. */
export const SANDBOX_FILES = {
  config: "config.json",
  api: "api.sock",
  ports: "ports.sock",
  control: "control.sock",
  platform: "platform.sock",
  exit: "exit.json",
  drives: "drives.json",
  claim: "claim.json",
  endsAt: "ends-at",
} as const;

export interface SandboxdConfig {
  /** Absolute paths, as seen inside the sandbox. The daemon creates them (mode 0600), replacing stale ones. */
  apiSocket: string;
  portSocket: string;
  controlSocket: string;
  /** Writable folder private to init and the daemon: process table, claim, exit records. Survives the daemon. */
  stateDir: string;
  /** Output of processes. Default /var/log/sandbox-api. */
  logDir?: string;
  /** Where relative paths and processes start. Default: the daemon's own working directory. */
  workDir?: string;
  /** Added to the environment of every process; wins over what init was started with. */
  env?: Record<string, string>;
  /** Who runs processes and terminals and owns written files. Default: whoever init runs as. */
  user?: SandboxUser;
  /** Loopback listeners that lead to the platform. */
  doors?: DoorConfig[];
  /**
   * JSON `SandboxClaim`, put there by the platform when a prepared sandbox becomes somebody's. Absent: the sandbox is
   * somebody's from the start.
   */
  claimFile?: string;
  /** Where names below localhost are answered, for a workload without a name server: "127.0.0.1:53". */
  names?: string;
  /** Open file descriptor of init: the daemon writes "READY\n" there once every socket listens, and closes it. */
  readyFd?: number;
  /** JSON `DriveMount[]` kept by the platform; GET /drives/mount answers from it. */
  drivesFile?: string;
  /** JSON `{ generation, environment }`, read by POST /environment/reload. Default /bl/metadata. */
  metadataFile?: string;
  /** FIFO made by the daemon: a process writes `+`, `-` or `=0` to keep the sandbox awake. */
  awakeFifo?: string;
  /** POST /upgrade swaps to this executable when it exists and differs from the running one. */
  upgradeFile?: string;
  /** From a SIGTERM to init, which is passed on to everything, until whatever is left is killed. Default 60 s: SIGKILL is sooner. */
  graceMs?: number;
  /** Where the lines of all processes that clients start are gathered, for the platform's logs. */
  processLogs?: { stdout: string; stderr: string };
  /** Processes and threads that may be there when a client's command starts another; the daemon may have more. */
  processesMax?: number;
  /** One foreground command beside the daemon: agents, MCP servers, batch tasks. */
  exec?: ExecConfig;
}

export interface SandboxUser {
  uid: number;
  gid: number;
  home?: string;
}

/** Every connection accepted on `listen` (host:port, loopback) becomes one connection to the unix socket `socket`. */
export interface DoorConfig {
  listen: string;
  socket: string;
}

export interface ExecConfig {
  /** Program and arguments; the program is looked up in PATH. Not a shell line. */
  argv: string[];
  /** One of the daemon's own programs, which gets `argv` as its arguments. */
  builtin?: string;
  cwd?: string;
  env?: Record<string, string>;
  /** Appended to; kept below LOG_FILE_BYTES_MAX by dropping the head. Default: init's own stdout and stderr. */
  stdoutFile?: string;
  stderrFile?: string;
  /** Receives an `ExecStatus` at start and at exit, replaced atomically. */
  statusFile: string;
  /**
   * After the command ends: "exit" ends init with its code (and with it the whole sandbox), "stay" leaves the daemon
   * serving, "restart" starts it again with growing pauses. Default "exit".
   */
  onExit?: "exit" | "stay" | "restart";
  /** The time of change of this file is when init kills everything and ends; the platform moves it on. */
  endsAtFile?: string;
}

export interface ExecStatus {
  state: "running" | "exited";
  pid: number;
  startedAt: string;
  finishedAt?: string;
  /** 127: could not be started. Absent when a signal ended it. */
  exitCode?: number;
  signal?: string;
  /** Why it could not be started. */
  error?: string;
  restarts: number;
}

/** One mounted drive, as GET /drives/mount shows it. */
export interface DriveMount {
  driveName: string;
  mountPath: string;
  drivePath: string;
  readOnly: boolean;
  uidMap?: string;
  gidMap?: string;
}

/** HTTP on the control socket. JSON in, JSON out, errors `{ error }`. */
export const CONTROL = {
  /** POST the body of an exec: runs it as any other and forgets it, so that the next one finds everything loaded. */
  warm: "/warm",
  /** GET -> `SandboxActivity`. */
  activity: "/activity",
  /** GET /serving/PORT -> `ServingProcess`; 404 when nothing listens there. */
  serving: "/serving/",
} as const;

/** What answers on a port, told so that it can be started again from a copy of the files. */
export interface ServingProcess {
  argv: string[];
  workDir: string;
  /** What it has beside, or other than, the sandbox's own variables. */
  env: Record<string, string>;
}

export interface SandboxClaim {
  /** Replaces `env` of the configuration as a whole. */
  env?: Record<string, string>;
  workDir?: string;
  user?: SandboxUser;
}

/** What the standby decision needs to know. */
export interface SandboxActivity {
  processesRunning: number;
  /** Running processes started with keepAlive: while above zero the sandbox must not sleep. */
  keepAlive: number;
  /** Counter of the awake FIFO: while above zero the sandbox must not sleep. */
  awake: number;
  terminalClients: number;
  /** Open connections through the port door and the platform doors. */
  portConnections: number;
  doorConnections: number;
}

/**
 * Port door: the client sends `PORT <n>\n`, the daemon answers `OK\n` or `ERR <reason>\n`; after OK both directions are
 * raw bytes with half-close. The client may send payload right behind its line.
 */
export const PORT_DOOR_LINE_BYTES_MAX = 256; // a reason is one short sentence; a longer line is not this protocol
export const portDoorRequest = (port: number): string => `PORT ${port}\n`;

/**
 * Content that one JSON or form request writes: the size above which clients send a file in parts. A tree of files
 * counts as a whole.
 */
export const FILE_CONTENT_BYTES_MAX = 5 * 1024 * 1024;

/** Output kept per log file; a busy process loses the head, never the tail. */
export const LOG_FILE_BYTES_MAX = 32 * 1024 * 1024;
