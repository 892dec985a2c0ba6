/**
 * The driver's record of a workload: labels of its container, so that the container alone tells a later server whose it
 * is. Limits and state are not in it: the engine knows them.
 */
import { z } from "zod";
import type { LogTag } from "../../../../contract/log-line.ts";
import type { Mount } from "../../../workload.ts";

/** All labels of this driver begin so. */
export const LABEL_PREFIX = "berth.";

export const LABEL = {
  /** The node that made a container, volume or image; no other node touches it. */
  node: "berth.node",
  /** What the node made it for. */
  role: "berth.role",
  uid: "berth.uid",
  record: "berth.record",
} as const;

export type Role = "workload" | "helper" | "volume" | "drive" | "snapshot" | "base";

export interface WorkloadRecord {
  uid: string;
  /** Its host name. */
  name: string;
  /** Name of its folder below workloads/. */
  id: string;
  image: string;
  mounts: Mount[];
  /** Whether the end of a foreground command ends the workload. */
  command: boolean;
  /** It does not outlive its server. */
  alone: boolean;
  network: "outbound" | "closed";
  log?: LogTag;
}

const FOLDER = /^[0-9a-f]{12}$/;
const recordSchema = z.custom<WorkloadRecord>(
  (value) =>
    z
      .object({ uid: z.string(), name: z.string(), id: z.string().regex(FOLDER), mounts: z.array(z.unknown()) })
      .safeParse(value).success,
);

export const labelsOf = (owner: string, record: WorkloadRecord): Record<string, string> => ({
  [LABEL.node]: owner,
  [LABEL.role]: "workload" satisfies Role,
  [LABEL.uid]: record.uid,
  [LABEL.record]: JSON.stringify(record),
});

/** Null for a container that this driver did not make, or whose label cannot be read. */
export function recordIn(labels: Record<string, string> | null | undefined): WorkloadRecord | null {
  const text = labels?.[LABEL.record];
  if (text === undefined) return null;
  try {
    return recordSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Filter of the engine's lists: what this node made in one role. */
export const ownedBy = (owner: string, role: Role): Record<string, string[]> => ({
  label: [`${LABEL.node}=${owner}`, `${LABEL.role}=${role}`],
});
