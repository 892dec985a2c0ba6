/**
 * The usage rate of a resource according to its record, in base units per millisecond. Running workloads are metered by
 * their node; existing resources once for the whole platform.
 */
import type { Instance, InstancesState } from "../contract/instance.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { DimensionName } from "./dimensions.ts";

export type Rates = Partial<Record<DimensionName, number>>;
export type MeteredRecord = Pick<Resource, "kind" | "name" | "uid" | "spec" | "state" | "deletedAt" | "retired">;

/** A part of a resource whose size only the machine knows. */
export type Stored = { image: string } | { snapshot: string } | { volumeCopy: string } | { drive: string };

interface WorkloadMeters {
  /** Dimension of the memory limit of running replicas; frozen replicas use nothing. */
  compute?: DimensionName;
  /** Dimension of the image size, charged while the resource exists. */
  image: DimensionName;
}

const WORKLOADS: Record<string, WorkloadMeters> = {
  sandbox: { compute: "sandbox_compute_runtime_gbs", image: "sandbox_image_storage_gbs" },
  agent: { compute: "agent_compute_runtime_gbs", image: "agent_image_storage_gbs" },
  function: { compute: "mcp_server_compute_runtime_gbs", image: "mcp_server_image_storage_gbs" },
  // The task runner meters the memory of a job's tasks, because a task may override it.
  job: { image: "job_image_storage_gbs" },
};

export const RUNNING_KINDS = Object.keys(WORKLOADS).filter((kind) => WORKLOADS[kind]?.compute);
export const KEPT_KINDS = [...Object.keys(WORKLOADS), "snapshot", "volume", "volumesnapshot", "drive", "customdomain"];

/** The running and frozen replicas of a resource on all nodes. */
export const instancesOf = ({ retired, state }: MeteredRecord): Instance[] => (retired ? [] : instancesIn(state));

const instancesIn = ({ instances = [] }: InstancesState): Instance[] => instances;

/** The usage rates of these replicas. */
export function runningRates(record: MeteredRecord, instances: readonly Instance[]): Rates {
  const compute = WORKLOADS[record.kind]?.compute;
  if (!compute) return {};
  return { [compute]: instances.filter(({ phase }) => phase === "running").length * memoryMb(record) };
}

/**
 * The usage rates of a resource for existing. `storedMb` is the size of `storedOf`, null when it is not on this
 * machine.
 */
export function keptRates(record: MeteredRecord, storedMb: number | null): Rates {
  const gone = record.retired || record.deletedAt !== null;
  const meters = WORKLOADS[record.kind];
  if (meters) return { [meters.image]: gone ? 0 : (storedMb ?? 0) };
  switch (record.kind) {
    case "snapshot":
      return { sandbox_snapshot_storage_gbs: gone ? 0 : (storedMb ?? 0) };
    case "volume":
      return { volume_storage_gbs: gone ? 0 : sizeMb(record) };
    case "volumesnapshot":
      return { volume_snapshot_storage_gbs: gone ? 0 : (storedMb ?? 0) };
    case "drive":
      return { drive_storage_gbs: gone ? 0 : (storedMb ?? 0) };
    case "customdomain":
      return { custom_domain_active_time_hours: !gone && record.spec.status === "verified" ? 1 : 0 };
    default:
      return {};
  }
}

/** The image, snapshot or drive whose size is metered; null for kinds without one. */
export function storedOf({ kind, name, uid, spec, state }: MeteredRecord): Stored | null {
  if (kind === "drive") return { drive: uid };
  if (kind === "snapshot") return state.phase === "ready" ? { snapshot: name } : null;
  if (kind === "volumesnapshot") return state.phase === "ready" ? { volumeCopy: name } : null;
  const image = WORKLOADS[kind] ? runtimeOf(spec).image : null;
  return typeof image === "string" && image !== "" ? { image } : null;
}

const runtimeOf = ({ runtime = {} }: { runtime?: { image?: unknown; memory?: unknown } }) => runtime;

const memoryMb = ({ spec }: MeteredRecord): number => whole(runtimeOf(spec).memory);

const sizeMb = ({ spec }: MeteredRecord): number => whole(spec.size);

const whole = (value: unknown): number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 ? value : 0;
