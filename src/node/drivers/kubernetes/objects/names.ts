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
  /** Digest of the workload's uid. */
  uid: "berth.uid",
  /** The kind of pod (`PoolKey`) that waits for an owner; absent once the pod has one. */
  pool: "berth.pool",
  managedBy: "app.kubernetes.io/managed-by",
} as const;

export type Role = "workload" | "server" | "volume" | "key" | "config" | "pull" | "policy";

export const ANNOTATION = {
  record: "berth.record",
  /** "yes": the platform ended every process, and the pod keeps the files. */
  halted: "berth.halted",
  /** JSON `Born` of a pod that was made for the pool. */
  born: "berth.born",
  /** "yes": the daemon of a pod in the pool answers, and has run its first commands. */
  ready: "berth.ready",
  /** A word of the server that claims the pod, until the daemon has its owner's configuration. */
  claim: "berth.claim",
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
export const digestOf = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, DIGEST_CHARS);

/** Of a pod that was made for its workload; a pod of the pool keeps the name that it was made with. */
export const podName = (instance: string, uid: string): string => `${instance}-w-${digestOf(uid)}`;
export const poolPodName = (instance: string, id: string): string => `${instance}-p-${id}`;
/** The digest of its workload's uid; older versions made pods without the label. */
export const podKeyOf = (instance: string, pod: { name: string; labels?: Record<string, string> | null | undefined }) =>
  pod.labels?.[LABEL.uid] ?? pod.name.replace(`${instance}-w-`, "");

export const claimName = (instance: string, volume: string): string => `${instance}-v-${digestOf(volume)}`;
export const keyName = (instance: string): string => `${instance}-workload-key`;
export const policyName = (instance: string): string => `${instance}-workloads`;

export const labelsOf = (instance: string, role: Role): Record<string, string> => ({
  [LABEL.instance]: instance,
  [LABEL.role]: role,
  [LABEL.managedBy]: "berth",
});

/** What tells a workload's pod from those of others. */
export const ownLabels = ({ uid, name }: { uid: string; name: string }): Record<string, string> => ({
  [LABEL.uid]: digestOf(uid),
  [LABEL.name]: hostWord(name),
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
