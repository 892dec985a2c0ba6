/**
 * The port through which the platform runs workloads: sandboxes, agents, MCP servers, job tasks, builds. A driver turns
 * a specification into a running, isolated set of processes and says what it observes; it decides nothing about names,
 * tenants or lifetimes. Every call is idempotent by uid, so that a reconcile loop may repeat it after any crash.
 *
 * What a driver observes is plain data. `dial` is a pure function of that data: any process of the node can reach a
 * workload from its stored record, without asking the driver that made it.
 */

import type { LogTag } from "../contract/log-line.ts";
import type { CallOptions, Endpoint } from "./dial/endpoint.ts";

export interface Driver {
  /** Name of this machine; stands in every observation. */
  readonly node: string;

  /** What isolation this machine can give, measured by doing it. */
  probe(): Promise<Probe>;

  /** Runs until the workload accepts connections. The same uid again answers with what is there. */
  create(spec: WorkloadSpec, options?: CallOptions): Promise<Observed>;
  /** null: this driver knows nothing of it. An exited workload stays observable until it is destroyed. */
  observe(uid: string): Promise<Observed | null>;
  list(): Promise<Observed[]>;
  /** Resolves when it ends (or is destroyed); rejects only when the signal aborts. */
  waitExit(uid: string, options?: CallOptions): Promise<Observed | null>;
  /** Moves the time at which a workload with `exec.endsAtMs` ends by itself. Unknown or ended: nothing to do. */
  prolong(uid: string, endsAtMs: number): Promise<void>;
  stats(uid: string): Promise<Stats>;
  /** What the foreground command wrote, from a byte offset on; the head of a very long output is dropped. */
  readOutput(uid: string, stream: "stdout" | "stderr", offset: number, bytesMax: number): Promise<Output>;

  freeze(uid: string): Promise<Observed>;
  thaw(uid: string): Promise<Observed>;
  setLimits(uid: string, limits: Limits): Promise<void>;
  /** Binds a directory into the running workload. The same mount again is no error. */
  mount(uid: string, mount: Mount): Promise<void>;
  /** Answers false when nothing of ours is mounted there. */
  unmount(uid: string, path: string): Promise<boolean>;
  /** SIGTERM, `graceMs` of patience, then SIGKILL; removes every trace. Unknown uid: nothing to do. */
  destroy(uid: string, options?: DestroyOptions): Promise<void>;

  /** A consistent copy of the files, kept under `id` until removed. The workload is held still meanwhile. */
  snapshot(uid: string, id: string): Promise<Snapshot>;
  removeSnapshot(id: string): Promise<void>;
  listSnapshots(): Promise<Snapshot[]>;

  /** A directory of limited size that outlives workloads. The same id again answers with what is there. */
  createVolume(spec: VolumeSpec): Promise<Volume>;
  observeVolume(id: string): Promise<Volume | null>;
  destroyVolume(id: string): Promise<void>;
  /** A directory without a size limit, shared by many workloads at once. The same id again changes nothing. */
  createDrive(id: string, options?: DriveOptions): Promise<void>;
  /** Bytes that its files take up; null when there is none of that id. */
  driveBytes(id: string): Promise<number | null>;
  destroyDrive(id: string): Promise<void>;

  /**
   * Unpacks an archive of plain files that a stranger sent (zip, tar or tar.gz) into an empty folder of this machine,
   * in a cage: whatever the archive holds, nothing outside the folder changes. Refuses what is no file or folder.
   */
  unpack(archive: string, folder: string, limits: UnpackLimits, options?: CallOptions): Promise<Unpacked>;

  /** Takes in a `docker save` or OCI image tar under one more name. */
  loadImage(tarPath: string, name: string, options?: CallOptions): Promise<Image>;
  /** null: no such image; a create that names it would be refused. */
  findImage(name: string): Promise<Image | null>;
  /** Bytes of its files, which may have to be counted first; null when there is no such image. */
  imageBytes(name: string): Promise<number | null>;
  listImages(): Promise<Image[]>;
  removeImage(name: string): Promise<boolean>;

  /** Ends this driver; workloads go on ("keep"), go on frozen, or end, as the argument says. */
  stop(workloads?: OnStop): Promise<void>;
}

export interface UnpackLimits {
  entriesMax: number;
  /** Of all files together. */
  bytesMax: number;
}

export interface Unpacked {
  /** Of all files together. */
  sizeBytes: number;
}

export interface DriveOptions {
  /** Host directory whose files it starts with; it is there with all of them or not at all. */
  from?: string;
}

export interface DestroyOptions {
  graceMs?: number;
  /** Called when nothing of it runs any more and its output can be read for the last time. */
  ended?(): Promise<void>;
}

export type OnStop = "keep" | "freeze" | "kill";

/**
 * How far a hostile workload is from the machine, strongest first:
 *   mapped     root inside is an unprivileged user range outside; namespaces, seccomp filter, cgroup limits
 *   contained  the same, but root inside is uid 0 outside, without any capability
 *   user       namespaces made by an unprivileged user: everything inside is that user
 *   none       a plain process of the server's own user
 */
export type Grade = "mapped" | "contained" | "user" | "none";

export interface Probe {
  grade: Grade;
  /** What this machine lacks for a higher grade or a full one, one sentence each. */
  missing: string[];
  seccomp: boolean;
  /** Which limits hold for the workload as a whole. Those absent are at most per-process limits. */
  limits: ("memory" | "cpu" | "pids")[];
  freezer: "cgroup" | "signal";
  /** How outbound connections leave: address translation, the platform's own proxy, or not at all. */
  outbound: "nat" | "proxy" | "none";
  /** Whether a volume's size is enforced by a file system of its own. */
  volumes: "sized" | "unsized";
}

/** Limits that a specification may ask for and this machine does not hold. */
export const unheldLimits = ({ limits }: Pick<Probe, "limits">): string[] =>
  (["memory", "cpu", "pids"] as const).filter((limit) => !limits.includes(limit));

export interface WorkloadSpec {
  uid: string;
  /** Host name inside. */
  name: string;
  image: string;
  /** Start from these files instead of the image's own. */
  snapshot?: string;
  env: Record<string, string>;
  /** Default: the image's. */
  workDir?: string;
  limits: Limits;
  mounts?: Mount[];
  network: NetworkClass;
  /** Names below `localhost` have to lead to its own loopback, whatever else it can resolve. */
  loopbackNames?: boolean;
  /** Whose log its output goes to; absent = to none. */
  log?: LogTag;
  /** One foreground command; without it the workload is a sandbox, alive until destroyed. */
  exec?: Exec;
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
 * `mcp-files` for a folder; `mcp-sql` for a SQLite file, or for the PostgreSQL that POSTGRES_URL names.
 */
export type Builtin = "mcp-stdio" | "mcp-files" | "mcp-sql";

export interface Limits {
  memoryMb: number;
  /** May be a fraction. */
  cpus: number;
  /** Default PIDS_DEFAULT. */
  pids?: number;
}

export interface Mount {
  source: { volume: string } | { drive: string; path?: string };
  /** Absolute, inside the workload; made when missing. */
  path: string;
  readOnly?: boolean;
  /** What the workload is told is mounted there; default: the drive's id. */
  name?: string;
}

export type WorkloadState = "running" | "frozen" | "exited";

/** Serialisable, and enough to reach the workload from any process of its node. */
export interface Observed {
  uid: string;
  node: string;
  state: WorkloadState;
  grade: Grade;
  endpoint: Endpoint;
  /** Host pid of the workload's first process; absent once exited. */
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
  /** Whose log its output goes to, where the driver remembers that through its lives. */
  log?: LogTag;
}

export interface Stats {
  memoryBytes: number;
  cpuMs: number;
  pids: number;
  /** Through its own network interface, where it has one; see Probe.outbound. */
  sentBytes?: number;
  receivedBytes?: number;
}

export interface Output {
  bytes: Buffer;
  /** How much there is in all. */
  size: number;
}

export interface Snapshot {
  id: string;
  image: string;
  sizeBytes: number;
  createdAt: string;
}

export interface VolumeSpec {
  id: string;
  sizeMb: number;
  /** Host directory whose files it starts with. */
  from?: string;
}

export interface Volume {
  id: string;
  sizeMb: number;
  usedBytes: number;
  /** false: the size is a wish; the machine lacks what would hold it. */
  sized: boolean;
}

export interface Image {
  name: string;
  /** Content address. */
  digest: string;
  sizeBytes: number;
  env: Record<string, string>;
  workDir: string;
  /** Entry point and arguments; empty when the image names none. */
  argv: string[];
  /** Who runs its processes; absent: root. */
  user?: ImageUser;
  createdAt: string;
}

export interface ImageUser {
  uid: number;
  gid: number;
  home: string;
}

/** Inside every workload, on its own loopback: the platform's API, and the way out of a workload with network "outbound". */
export const PLATFORM_DOOR_PORT = 987;
export const EGRESS_DOOR_PORT = 988;

/** Processes and threads of one workload together; enough for a build, far below the machine's own limit. */
export const PIDS_DEFAULT = 2048;
