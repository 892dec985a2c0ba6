/** A workload to be started, with what was looked up for it. */
import { randomBytes } from "node:crypto";
import type { WorkloadSpec } from "../../../workload.ts";
import type { PodOrder } from "../objects/pod-body.ts";
import type { WorkloadRecord } from "./record.ts";

export interface Order {
  spec: WorkloadSpec;
  image: string;
  /** Whether processes get the user that the image names. */
  ownUser: boolean;
  claims: PodOrder["claims"];
}

const ID_BYTES = 6;
export const newId = (): string => randomBytes(ID_BYTES).toString("hex");

export const recordOf = (spec: WorkloadSpec, id: string): WorkloadRecord => ({
  uid: spec.uid,
  name: spec.name,
  id,
  image: spec.image,
  mounts: spec.mounts ?? [],
  command: spec.exec !== undefined,
  ...(spec.limits.pids === undefined ? {} : { pids: spec.limits.pids }),
  ...(spec.log ? { log: spec.log } : {}),
});
