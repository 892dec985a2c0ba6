/** A workload as data: the specification that a driver is given, and the observation that it gives back. */

import type { LogTag } from "../contract/log-line.ts";
import type { Grade } from "../lib/grades.ts";
import type { Endpoint } from "./dial/endpoint.ts";

export type { Grade } from "../lib/grades.ts";

export interface WorkloadSpec {
  uid: string;
  /** Host name inside. */
  name: string;
  image: string;
  /** How the image is fetched, for a driver whose engine does that. */
  pull?: ImagePull;
  /** Start from these files instead of the image's own. */
  snapshot?: string;
  /** Go on from the memory in the snapshot (`memorySnapshots`), for a workload that is not there yet. */
  resumed?: true;
  env: Record<string, string>;
  /** Default: the image's. */
  workDir?: string;
  limits: Limits;
  /** The weakest grade that the workload may have; default: the driver's own. */
  isolation?: Grade;
  /** Size of its root in MB, where roots have one (`Probe.roots`). Default: by memory. */
  storageMb?: number;
  mounts?: Mount[];
  network: NetworkClass;
  /** Names below `localhost` have to lead to its own loopback, whatever else it can resolve. */
  loopbackNames?: boolean;
  /** Whose log its output goes to; absent = to none. */
  log?: LogTag;
  /** One foreground command; without it the workload is a sandbox, which keeps its files until it is destroyed. */
  exec?: Exec;
}

export interface ImagePull {
  credentials?: { registry: string; repository: string; username: string; password: string };
}

/** `outbound`: the internet but no private address. `closed`: only the platform's doors. */
export type NetworkClass = "outbound" | "closed";

export interface Exec {
  /** Program and arguments, looked up in PATH; not a shell line. Empty: the image's own entry point. */
  argv: string[];
  /** A program that the driver brings along, which gets `argv` as its arguments. */
  builtin?: Builtin;
  /** After it ends: end the workload with its code, keep it reachable, or start it again. Default "exit". */
  onExit?: "exit" | "stay" | "restart";
  /**
   * Nothing but the command: no daemon, so its API and ports cannot be reached, but it starts and ends in a fraction of
   * the time. It does not outlive the next opening of its driver, which ends it and keeps what it wrote.
   */
  alone?: boolean;
  /**
   * By the clock of its machine: from then on nothing of it runs, unless it was prolonged, also when nobody is left to
   * end it. For work that another machine takes over when this one is not heard of.
   */
  endsAtMs?: number;
}

/**
 * MCP servers over HTTP: `mcp-stdio` for the one that `argv` starts, and that speaks on standard input and output;
 * `mcp-files` for a folder; `mcp-sql` for a SQLite file, or for the PostgreSQL that POSTGRES_URL names. `build-files`
 * changes files for a step of an image build.
 */
export type Builtin = "mcp-stdio" | "mcp-files" | "mcp-sql" | "build-files";

export interface Limits {
  memoryMb: number;
  /** May be a fraction. */
  cpus: number;
  /** Default PIDS_DEFAULT. */
  pids?: number;
}

export interface Mount {
  /** `node`: the other node that has the drive; absent = this one. */
  source: { volume: string } | { drive: string; path?: string; node?: string };
  /** Absolute, inside the workload; made when missing. */
  path: string;
  readOnly?: boolean;
  /** What the workload is told is mounted there; default: the drive's id. */
  name?: string;
  /** The platform mounts this drive for its own purposes; the workload's list of drives does not have it. */
  platform?: true;
}

export type WorkloadState = "running" | "frozen" | "exited";

/** Serialisable, and enough to reach the workload from any process of its node. */
export interface Observed {
  uid: string;
  node: string;
  state: WorkloadState;
  grade: Grade;
  endpoint: Endpoint;
  /** Its memory lies on disk; the state is "frozen". */
  hibernated?: true;
  /** Host pid of the workload's first process; absent once exited, and while hibernated. */
  pid?: number;
  limits: Limits;
  mounts: Mount[];
  createdAt: string;
  /** Whether it came from the warm pool. */
  pooled: boolean;
  /** Of the foreground command, or of the workload's first process. Absent when a signal ended it. */
  exitCode?: number;
  exitSignal?: string;
  /** The memory limit killed something inside since the start. */
  oom: boolean;
  /** What ended it, other than itself: a call of the platform, or a restart of the machine. */
  endedBy?: "platform" | "machine";
  /** The programs of the machine below its files are others than those it started on first. */
  otherBase?: boolean;
  /** Whose log its output goes to, where the driver remembers that through its lives. */
  log?: LogTag;
}

export interface Stats {
  memoryBytes: number;
  cpuMs: number;
  pids: number;
  /** Space that its own files take, where the driver can tell without looking at each file. */
  diskBytes?: number;
  /** Through its own network interface, where it has one; see Probe.outbound. */
  sentBytes?: number;
  receivedBytes?: number;
}

export interface Output {
  bytes: Buffer;
  /** How much there is in all. */
  size: number;
}

/** Inside every workload, on its own loopback: the platform's API, and the way out of a workload with network "outbound". */
export const PLATFORM_DOOR_PORT = 987;
export const EGRESS_DOOR_PORT = 988;

/** Processes and threads of one workload together; enough for a build, far below the machine's own limit. */
export const PIDS_DEFAULT = 2048;
