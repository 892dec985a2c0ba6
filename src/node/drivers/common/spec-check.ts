/** Checks values from callers that become paths and kernel settings. */
import { PlatformError } from "../../../contract/errors.ts";
import { mountPathProblem, plainPath } from "../../../contract/mount-path.ts";
import type { Limits, Mount, WorkloadSpec } from "../../workload.ts";

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

const MOUNTS_MAX = 32; // each costs a mount in the workload's namespace
const PATH_BYTES_MAX = 1024;
/** Most bytes of environment and arguments, which the kernel limits per process. */
const ENV_BYTES_MAX = 1024 * 1024;
/** Smallest memory limit that holds the daemon and one shell. */
const MEMORY_MB_MIN = 32;

export function checkSpec(spec: WorkloadSpec): void {
  checkId(spec.uid);
  if (!ID.test(spec.name)) throw invalid(`The name ${JSON.stringify(spec.name)} cannot be a host name.`);
  checkLimits(spec.limits);
  let envBytes = 0;
  for (const [name, value] of Object.entries(spec.env)) {
    if (name === "" || /[=\0]/.test(name) || value.includes("\0")) throw invalid(`The variable ${name} is malformed.`);
    envBytes += Buffer.byteLength(name) + Buffer.byteLength(value) + 2;
  }
  if (envBytes > ENV_BYTES_MAX) throw invalid("The environment is larger than 1 MB.");
  const mounts = spec.mounts ?? [];
  if (mounts.length > MOUNTS_MAX) throw invalid(`At most ${MOUNTS_MAX} mounts are possible.`);
  for (const mount of mounts) checkMount(mount);
  if (new Set(mounts.map(({ path }) => path)).size < mounts.length) throw invalid("Two mounts have the same path.");
  if (spec.workDir !== undefined) checkPath(spec.workDir);
}

export function checkId(id: string): void {
  if (!ID.test(id)) throw invalid(`${JSON.stringify(id)} cannot be an id.`);
}

export function checkLimits({ memoryMb, cpus, pids }: Limits): void {
  if (!(memoryMb >= MEMORY_MB_MIN)) throw invalid(`A workload needs at least ${MEMORY_MB_MIN} MB of memory.`);
  if (!(cpus > 0)) throw invalid("A workload needs a share of a processor.");
  if (pids !== undefined && !(pids >= 8)) throw invalid("A workload needs at least 8 processes.");
}

export function checkMount({ source, path }: Mount): void {
  checkId("volume" in source ? source.volume : source.drive);
  if ("drive" in source && source.path !== undefined) checkPath(source.path);
  checkPath(path);
  const problem = path === plainPath(path) ? mountPathProblem(path) : "has needless slashes";
  if (problem) throw invalid(`Nothing can be mounted at ${path}: it ${problem}.`);
}

function checkPath(path: string): void {
  const parts = path.split("/");
  if (!path.startsWith("/") || path.includes("\0") || parts.includes("..") || parts.includes(".")) {
    throw invalid(`${JSON.stringify(path)} is not an absolute path.`);
  }
  if (Buffer.byteLength(path) > PATH_BYTES_MAX || parts.some((part) => Buffer.byteLength(part) > 255)) {
    throw invalid("The path is too long.");
  }
}

const invalid = (message: string): PlatformError => new PlatformError("bad_request", message);
