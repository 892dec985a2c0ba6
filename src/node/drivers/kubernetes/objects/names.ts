/**
 * Names and labels of this driver's objects. Words of tenants become a digest in names and a harmless word in labels:
 * nothing of theirs is a name that another object could have.
 */
import { createHash } from "node:crypto";

export const LABEL = {
  /** The installation that an object belongs to; no other installation touches it. */
  instance: "berth.instance",
  role: "berth.role",
  /** For people who look at the cluster. */
  name: "berth.name",
  managedBy: "app.kubernetes.io/managed-by",
} as const;

export type Role = "workload" | "server" | "volume" | "key" | "config" | "pull" | "policy";

export const ANNOTATION = {
  record: "berth.record",
  /** "yes": the platform ended every process, and the pod keeps the files. */
  halted: "berth.halted",
  /** "yes": the daemon has stopped every process. */
  frozen: "berth.frozen",
  /** The server that keeps the workload's log. */
  logNode: "berth.log-node",
  volume: "berth.volume",
  sizeMb: "berth.size-mb",
  /** Uid of the workload that has the volume. */
  user: "berth.user",
  /** "no" while the files that a volume starts with are being sent. */
  filled: "berth.filled",
} as const;

const DIGEST_CHARS = 20;
const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, DIGEST_CHARS);

export const podName = (instance: string, uid: string): string => `${instance}-w-${digestOf(uid)}`;
export const claimName = (instance: string, volume: string): string => `${instance}-v-${digestOf(volume)}`;
export const keyName = (instance: string): string => `${instance}-workload-key`;
export const policyName = (instance: string): string => `${instance}-workloads`;

export const labelsOf = (instance: string, role: Role): Record<string, string> => ({
  [LABEL.instance]: instance,
  [LABEL.role]: role,
  [LABEL.managedBy]: "berth",
});

export const selectorOf = (instance: string, role: Role): string =>
  `${LABEL.instance}=${instance},${LABEL.role}=${role}`;

/** A host name made of a workload's name: lower case letters, digits and hyphens. */
export function hostWord(name: string): string {
  const word = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replace(/^-+|-+$/g, "");
  return word === "" ? "workload" : word;
}
