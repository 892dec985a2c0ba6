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
 * Runtime options of the daemon: a small heap; JIT compilation only for code that runs thousands of times, because most
 * daemons answer a few requests and then idle; no timed garbage collection and no eager return of pages, because the
 * daemon does both when it becomes idle. init passes them to the daemon; setting them in init's own environment saves
 * more. Workloads never see them.
 */
export const SANDBOXD_RUNTIME_ENV = {
  BUN_JSC_forceMiniVMMode: "1",
  BUN_JSC_thresholdForJITAfterWarmUp: "50000",
  BUN_JSC_thresholdForJITSoon: "50000",
  BUN_JSC_numberOfGCMarkers: "1",
  BUN_GC_TIMER_DISABLE: "1",
  MIMALLOC_PURGE_DELAY: "1000",
} as const;

/** Path inside the sandbox of the folder that the platform shares with it. */
export const SANDBOX_RUN_DIR = "/run/berth";

/** File names inside that folder. `platform` is the platform's own socket, bind-mounted for the doors. */
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
  asleep: "asleep",
  generation: "generation",
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
  /** Added to the environment of every process; overrides the variables of init. */
  env?: Record<string, string>;
  /** The user that runs processes and terminals and owns written files. Default: the user of init. */
  user?: SandboxUser;
  /** A file whose owner is that user, where the driver does not know the ids. */
  userFile?: string;
  /** Loopback listeners that forward to the platform. */
  doors?: DoorConfig[];
  gate?: GateConfig;
  /**
   * init ends with the last bytes of the output files as lines of its own standard output (`OutputFrame`), for a
   * platform that cannot read the files any more by then.
   */
  lastOutput?: boolean;
  /**
   * JSON `SandboxClaim`, written by the platform when a pooled sandbox is handed out. Absent: the sandbox has an owner
   * from the start.
   */
  claimFile?: string;
  /** Address of the DNS listener for names below localhost, for a workload without a name server: "127.0.0.1:53". */
  names?: string;
  /** Open file descriptor of init: the daemon writes "READY\n" there once every socket listens, and closes it. */
  readyFd?: number;
  /** JSON `DriveMount[]` kept by the platform; GET /drives/mount answers from it. */
  drivesFile?: string;
  /** JSON `{ generation, environment }`, read by POST /environment/reload. Default /bl/metadata. */
  metadataFile?: string;
  /**
   * FIFO created by the daemon: a process writes `+`, `-` or `=0` to change the counter that keeps the sandbox awake.
   */
  awakeFifo?: string;
  /** POST /upgrade swaps to this executable when it exists and differs from the running one. */
  upgradeFile?: string;
  /**
   * Time between SIGTERM to init, which forwards it to all processes, and SIGKILL of the remaining ones. Default 60 s.
   */
  graceMs?: number;
  /** Files that collect the output of all processes started by clients, for the platform's logs. */
  processLogs?: { stdout: string; stderr: string };
  /** Most processes and threads at which a client's command may start another; the daemon itself may exceed it. */
  processesMax?: number;
  /** While this file is there, a daemon that was told to sleep has no socket; see CONTROL.sleep. */
  asleepFile?: string;
  /** Another one in each workload that goes on from the memory of a snapshot; see `generationFile`. */
  generation?: string;
  /**
   * Inside; the daemon writes the generation there when it woke as a copy, and sends SIGCONT to every process: programs
   * that keep random state, ids or connections then make new ones.
   */
  generationFile?: string;
  /** One foreground command beside the daemon: agents, MCP servers, batch tasks. */
  exec?: ExecConfig;
}

export interface SandboxUser {
  uid: number;
  gid: number;
  home?: string;
}

/**
 * Every connection accepted on `listen` (host:port, loopback) becomes one connection to the platform. A door with neither
 * `socket` nor `remote` gets its port with the claim, and hangs up before.
 */
export interface DoorConfig {
  listen: string;
  /** The platform's unix socket. */
  socket?: string;
  /** The platform's TCP port, for a workload that shares no folder with a server. */
  remote?: RemoteDoor;
}

/** A door that a connection enters with a proof; see `lib/network/gate/wire.ts`. */
export interface RemoteDoor {
  host: string;
  port: number;
  /** Which door, and of which workload. */
  purpose: string;
  token: string;
}

/** The daemon's sockets on a TCP port, for a server that shares no folder with the workload. */
export interface GateConfig {
  port: number;
  /** Known to the platform and to root of this workload. */
  token: string;
}

/** In the environment of init: the address that the gate listens on. Absent: all addresses. */
export const GATE_ADDRESS_VARIABLE = "SANDBOXD_ADDRESS";

export interface ExecConfig {
  /** Program and arguments; the program is looked up in PATH. Not a shell line. */
  argv: string[];
  /** One of the daemon's own programs, which gets `argv` as its arguments. */
  builtin?: string;
  cwd?: string;
  env?: Record<string, string>;
  /** The output is appended; beyond LOG_FILE_BYTES_MAX the head is dropped. Default: init's own stdout and stderr. */
  stdoutFile?: string;
  stderrFile?: string;
  /** Receives an `ExecStatus` at start and at exit, replaced atomically. */
  statusFile: string;
  /**
   * After the command ends: "exit" ends init with the same code (and with it the whole sandbox), "stay" leaves the
   * daemon serving, "restart" starts the command again with backoff. Default "exit".
   */
  onExit?: "exit" | "stay" | "restart";
  /** The file's mtime is the time at which init kills everything and exits; the platform moves it forward. */
  endsAtFile?: string;
  /** The time for a file that is not there yet: init makes the file. */
  endsAtMs?: number;
}

export interface ExecStatus {
  state: "running" | "exited";
  pid: number;
  startedAt: string;
  finishedAt?: string;
  /** 127 = the command could not be started. Absent when a signal ended it. */
  exitCode?: number;
  signal?: string;
  /** Why the command could not be started. */
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
  /** POST the body of an exec: runs it like any other and forgets it, to warm up the code for the next one. */
  warm: "/warm",
  /** POST the body of E2B's `process.Process/Start`: the same for the API of E2B's clients. */
  warmE2b: "/warm/e2b",
  /** GET -> `SandboxActivity`. */
  activity: "/activity",
  /** GET /serving/PORT -> `ServingProcess`; 404 when nothing listens there. */
  serving: "/serving/",
  /** GET /output/stdout?offset=N&bytes=N -> the bytes; OUTPUT_SIZE_HEADER tells how much there is in all. */
  output: "/output/",
  /** GET -> `SandboxStats`. */
  stats: "/stats",
  /** POST `{ endsAtMs }`: moves the end of the foreground command. */
  endsAt: "/ends-at",
  /** POST `{ graceMs }`: SIGTERM to everything, SIGKILL after that time. */
  end: "/end",
  /** POST `SandboxClaim`: gives a prepared sandbox its owner, for a platform that shares no folder with it. */
  claim: "/claim",
  /** POST `{ graceMs }`: ends every process but init and the daemon, which goes on serving; the files stay. */
  halt: "/halt",
  /** POST: stops every process but init and the daemon (SIGSTOP), and lets them go on (SIGCONT). */
  freeze: "/freeze",
  thaw: "/thaw",
  /** POST: closes every socket of the daemon and removes their files, until `asleepFile` is gone; 409 while one is in use. */
  sleep: "/sleep",
} as const;

export const OUTPUT_SIZE_HEADER = "x-output-size";

/** One line of init's standard output at its end; lines of another shape are none of the output. */
export interface OutputFrame {
  berth: "stdout" | "stderr";
  /** Position of the first byte. */
  at: number;
  /** Bytes of the whole output. */
  size: number;
  /** Base64. */
  data: string;
}

/** What the processes of a workload use together. */
export interface SandboxStats {
  memoryBytes: number;
  cpuMs: number;
  pids: number;
}

/** The process that listens on a port, described so that it can be started again from a copy of the files. */
export interface ServingProcess {
  argv: string[];
  workDir: string;
  /** Variables that differ from the sandbox's own or are added to them. */
  env: Record<string, string>;
}

export interface SandboxClaim {
  /** Replaces the whole `env` of the configuration. */
  env?: Record<string, string>;
  workDir?: string;
  user?: SandboxUser;
  /** The platform's ports for the doors of the configuration, in their order. */
  doors?: RemoteDoor[];
}

/** The activity counters that decide about standby. */
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
/** Most connections per door of one workload; an agent's tools seldom hold more than a few dozen. */
export const DOOR_CONNECTIONS_MAX = 512;

/** Most connections to a socket of the daemon that have sent no request yet. */
export const HALF_OPEN_MAX = 64;

export const PORT_DOOR_LINE_BYTES_MAX = 256; // a reason is one short sentence; a longer line is not this protocol
export const portDoorRequest = (port: number): string => `PORT ${port}\n`;

/**
 * Most content that one JSON or form request may write, in bytes; clients send larger files in parts. A tree of files
 * counts as a whole.
 */
export const FILE_CONTENT_BYTES_MAX = 5 * 1024 * 1024;

/** Bytes kept per log file; a busy process loses the head, never the tail. */
export const LOG_FILE_BYTES_MAX = 32 * 1024 * 1024;

/** Where a workload with routes finds the authority of its workspace; the platform mounts the folder. */
export const TRUST_DIR = "/etc/outbound-trust";
export const TRUST_FILES = { authority: "authority.pem", bundle: "bundle.pem", java: "java.jks" } as const;
