/** A workload as the engine is asked for it, and as the engine shows it. */
import { join } from "node:path";
import { SANDBOX_RUN_DIR } from "../../../../contract/sandbox-wire.ts";
import type { Grade, Limits, Observed } from "../../../workload.ts";
import { PIDS_DEFAULT } from "../../../workload.ts";
import { BIN_DIR, HOST_DIR, INIT_ARGV, INIT_ENV } from "../../common/daemon-config.ts";
import type { Container } from "../engine/answers.ts";
import type { WorkloadRecord } from "./record.ts";

const MB = 1024 * 1024;

/** The part of a container's description that every container of this driver has. */
export interface Cage {
  runtime?: string | undefined;
  limits: Limits;
  mounts: ContainerMount[];
}

/** A folder of the machine, or a volume of the engine. */
export interface ContainerMount {
  Type: "bind" | "volume";
  Source: string;
  Target: string;
  ReadOnly: boolean;
  VolumeOptions?: { NoCopy: boolean };
}

/**
 * What root inside may do. Without raw sockets and device nodes, which the engine would give; with the rights to give
 * files and processes to other users, which package managers need.
 */
const CAPABILITIES = [
  "AUDIT_WRITE",
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "KILL",
  "NET_BIND_SERVICE",
  "SETFCAP",
  "SETGID",
  "SETPCAP",
  "SETUID",
  "SYS_CHROOT",
];

/** Output of init itself, for the message about a start that failed. Commands write into files. */
const LOG = { Type: "json-file", Config: { "max-size": "128m", "max-file": "1" } };

/**
 * Without a network: the workload's only ways out are the doors, which are sockets. So it reaches neither another
 * workload nor the machine, whatever networks and firewalls the engine has.
 */
export const hostConfig = ({ runtime, limits, mounts }: Cage) => ({
  ...(runtime ? { Runtime: runtime } : {}),
  NetworkMode: "none",
  Dns: ["127.0.0.1"],
  IpcMode: "private",
  CapDrop: ["ALL"],
  CapAdd: CAPABILITIES,
  SecurityOpt: ["no-new-privileges"],
  ShmSize: Math.floor((limits.memoryMb * MB) / 2),
  LogConfig: LOG,
  RestartPolicy: { Name: "no" },
  Mounts: mounts,
  ...limitsOf(limits),
});

/** As the engine takes limits at the start and while the container runs. */
export const limitsOf = ({ memoryMb, cpus, pids = PIDS_DEFAULT }: Limits) => ({
  Memory: Math.round(memoryMb * MB),
  // The same number: no swap beside the memory.
  MemorySwap: Math.round(memoryMb * MB),
  NanoCpus: Math.round(cpus * 1e9),
  PidsLimit: pids,
});

/** The folders of the machine that a workload sees. */
export const sharedFolders = (dir: string, binDir: string): ContainerMount[] => [
  { Type: "bind", Source: join(dir, "run"), Target: SANDBOX_RUN_DIR, ReadOnly: false },
  { Type: "bind", Source: join(dir, "host"), Target: HOST_DIR, ReadOnly: true },
  { Type: "bind", Source: binDir, Target: BIN_DIR, ReadOnly: true },
];

export interface ContainerBody {
  image: string;
  name: string;
  workDir: string;
  labels: Record<string, string>;
  cage: Cage;
}

const HOST_NAME_MAX = 63;

export const containerBody = ({ image, name, workDir, labels, cage }: ContainerBody) => ({
  Image: image,
  Hostname: name.slice(0, HOST_NAME_MAX),
  // The daemon runs as root and starts processes as the image's user.
  User: "0:0",
  Entrypoint: INIT_ARGV.slice(0, 1),
  Cmd: INIT_ARGV.slice(1),
  Env: INIT_ENV,
  WorkingDir: workDir,
  Labels: labels,
  Healthcheck: { Test: ["NONE"] },
  HostConfig: hostConfig(cage),
});

export interface Ground {
  node: string;
  /** Folder of all workloads. */
  dir: string;
  grade: Grade;
}

export function observedOf(container: Container, record: WorkloadRecord, { node, dir, grade }: Ground): Observed {
  const { State: state, HostConfig: host } = container;
  const isAlive = state.Running;
  const pids = host.PidsLimit ?? PIDS_DEFAULT;
  return {
    uid: record.uid,
    node,
    state: isAlive ? (state.Paused ? "frozen" : "running") : "exited",
    grade,
    endpoint: { kind: "unix", node, dir: join(dir, record.id, "run") },
    ...(isAlive ? { pid: state.Pid } : { exitCode: state.ExitCode }),
    limits: {
      memoryMb: host.Memory / MB,
      cpus: host.NanoCpus / 1e9,
      ...(pids === PIDS_DEFAULT ? {} : { pids }),
    },
    mounts: record.mounts,
    createdAt: new Date(container.Created).toISOString(),
    pooled: false,
    oom: state.OOMKilled,
    ...(record.log ? { log: record.log } : {}),
  };
}
