/**
 * What a resource uses while it is as its record says, in base units per millisecond. What runs is metered by the node
 * it runs on; what merely exists, once for the whole platform.
 */
import type { Instance, InstancesState } from "../contract/instance.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { DimensionName } from "./dimensions.ts";

export type Rates = Partial<Record<DimensionName, number>>;
export type MeteredRecord = Pick<Resource, "kind" | "name" | "uid" | "spec" | "state" | "deletedAt" | "retired">;

/** Something of a resource whose size only the machine knows. */
export type Stored = { image: string } | { snapshot: string } | { drive: string };

interface WorkloadMeters {
  /** Memory limit of what runs; what is frozen uses nothing. */
  compute?: DimensionName;
  /** Size of the image, as long as the resource exists. */
  image: DimensionName;
}

const WORKLOADS: Record<string, WorkloadMeters> = {
  sandbox: { compute: "sandbox_compute_runtime_gbs", image: "sandbox_image_storage_gbs" },
  agent: { compute: "agent_compute_runtime_gbs", image: "agent_image_storage_gbs" },
  function: { compute: "mcp_server_compute_runtime_gbs", image: "mcp_server_image_storage_gbs" },
  // The memory of a job's tasks is metered by whoever runs them: a task may ask for its own.
  job: { image: "job_image_storage_gbs" },
};

export const RUNNING_KINDS = Object.keys(WORKLOADS).filter((kind) => WORKLOADS[kind]?.compute);
export const KEPT_KINDS = [...Object.keys(WORKLOADS), "snapshot", "volume", "drive", "customdomain"];

/** The running and the frozen copies of a resource, wherever they are. */
export const instancesOf = ({ retired, state }: MeteredRecord): Instance[] =>
  retired ? [] : ((state as InstancesState).instances ?? []);

/** What these copies of the resource use. */
export function runningRates(record: MeteredRecord, instances: readonly Instance[]): Rates {
  const compute = WORKLOADS[record.kind]?.compute;
  if (!compute) return {};
  return { [compute]: instances.filter(({ phase }) => phase === "running").length * memoryMb(record) };
}

/** What the resource takes up by being there. `storedMb` is the size of what `storedOf` names, null when it is not here. */
export function keptRates(record: MeteredRecord, storedMb: number | null): Rates {
  const gone = record.retired || record.deletedAt !== null;
  const meters = WORKLOADS[record.kind];
  if (meters) return { [meters.image]: gone ? 0 : (storedMb ?? 0) };
  switch (record.kind) {
    case "snapshot":
      return { sandbox_snapshot_storage_gbs: gone ? 0 : (storedMb ?? 0) };
    case "volume":
      return { volume_storage_gbs: gone ? 0 : sizeMb(record) };
    case "drive":
      return { drive_storage_gbs: gone ? 0 : (storedMb ?? 0) };
    case "customdomain":
      return { custom_domain_active_time_hours: !gone && record.spec.status === "verified" ? 1 : 0 };
    default:
      return {};
  }
}

/** The image, the snapshot or the files whose size counts, for kinds that have one. */
export function storedOf({ kind, name, uid, spec, state }: MeteredRecord): Stored | null {
  if (kind === "drive") return { drive: uid };
  if (kind === "snapshot") return state.phase === "ready" ? { snapshot: name } : null;
  const image = WORKLOADS[kind] ? (spec.runtime as { image?: unknown } | undefined)?.image : null;
  return typeof image === "string" && image !== "" ? { image } : null;
}

const memoryMb = ({ spec }: MeteredRecord): number => whole((spec.runtime as { memory?: unknown } | undefined)?.memory);

const sizeMb = ({ spec }: MeteredRecord): number => whole(spec.size);

const whole = (value: unknown): number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 ? value : 0;
