/** The driver's record of a workload: an annotation of its pod, so that the pod alone tells any server what it is. */
import { z } from "zod";
import type { LogTag } from "../../../../contract/log-line.ts";
import type { Mount } from "../../../workload.ts";
import type { Pod } from "../objects/answers.ts";
import { ANNOTATION } from "../objects/names.ts";

export interface WorkloadRecord {
  uid: string;
  name: string;
  /** Of this life of the workload; tokens are derived from it. */
  id: string;
  /** The name that a pod of the pool had before its owner came: the token of its gate stays that of this name. */
  born?: string;
  /** When the owner came, where the pod is older. */
  since?: string;
  image: string;
  mounts: Mount[];
  /** Whether the end of a foreground command ends the workload. */
  command: boolean;
  /** Processes that were asked for; absent: the default. */
  pids?: number;
  log?: LogTag;
}

const ID = /^[0-9a-f]{12}$/;
const recordSchema = z.custom<WorkloadRecord>(
  (value) =>
    z
      .object({ uid: z.string(), name: z.string(), id: z.string().regex(ID), mounts: z.array(z.unknown()) })
      .safeParse(value).success,
);

/** Null for a pod that this driver did not make, or whose annotation cannot be read. */
export function recordIn(pod: Pick<Pod, "metadata"> | null): WorkloadRecord | null {
  const text = pod?.metadata.annotations?.[ANNOTATION.record];
  if (text === undefined) return null;
  try {
    return recordSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
