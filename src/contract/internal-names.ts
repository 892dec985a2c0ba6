/**
 * Names by which workloads call each other without leaving the machine: below a domain that resolves to the workload's
 * own loopback, where the platform listens. Client libraries compute the same names with the same hash.
 */
import { createHash } from "node:crypto";

/** Below `localhost`, so that no DNS server ever answers for it. */
export const INTERNAL_DOMAIN = "run.localhost";

/** Kinds with an internal name. */
export const INTERNAL_KINDS = ["agent", "function"] as const;
export type InternalKind = (typeof INTERNAL_KINDS)[number];

const LABEL = /^bl-[a-z0-9]+-([0-9a-f]{32})$/;

/** The hash that clients compute themselves. Two workloads may share one; held-words.ts says which one it leads to. */
export const internalHash = (workspace: string, kind: InternalKind, name: string): string =>
  createHash("md5").update(`${workspace}-${kind}-${name}`).digest("hex");

export const internalName = (hash: string): string => `bl-prod-${hash}`;

/** The hash in the first label of a host name; null for other hosts. */
export const hashIn = (label: string): string | null => LABEL.exec(label)?.[1] ?? null;
