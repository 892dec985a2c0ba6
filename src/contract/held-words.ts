/**
 * Words by which the gateway finds a resource from a host name. A word is claimed when the resource is made and belongs
 * to that workspace, kind and name ever after: nobody else gets it, not even when the resource is deleted, and the same
 * resource made again has it again. Where two natural words meet, the later resource gets a spare one.
 */
import { createHash } from "node:crypto";
import { DNS_LABEL_MAX, WORKLOADS, type WorkloadKind, workloadLabel } from "./addresses.ts";
import { INTERNAL_KINDS, type InternalKind, internalHash } from "./internal-names.ts";

/**
 * Each pool is a name space of its own: the first labels of workloads' host names, those of previews (also their last
 * path segments), and the hashes in the names by which neighbours call each other.
 */
export type WordPool = "workload" | "preview" | "internal";

/** Whose word it is. Its account is found by its workspace when the word is claimed. */
export interface WordOwner {
  workspace: string;
  kind: string;
  /** Within workspace and kind; `sandbox/preview` for a preview. */
  name: string;
}

export interface WordWish {
  pool: WordPool;
  owner: WordOwner;
  /** What the word is when nobody else has it. */
  natural: string;
}

/** Where the word of a resource stands in its state, when it is not the natural one; "" = it has none. */
export const HOST_LABEL = "hostLabel";

export const hostLabelOf = ({ state }: { state: Record<string, unknown> }): string | undefined =>
  typeof state[HOST_LABEL] === "string" ? state[HOST_LABEL] : undefined;

/** Digits of the suffix, in the order they are tried: more only where somebody made a name of just these digits. */
const SUFFIX_DIGITS = [8, 16, 32];

export const workloadWish = (owner: WordOwner): WordWish | null =>
  Object.hasOwn(WORKLOADS, owner.kind)
    ? { pool: "workload", owner, natural: workloadLabel(owner.kind as WorkloadKind, owner) }
    : null;

export const internalWish = (owner: WordOwner): WordWish | null =>
  INTERNAL_KINDS.some((kind) => kind === owner.kind)
    ? { pool: "internal", owner, natural: internalHash(owner.workspace, owner.kind as InternalKind, owner.name) }
    : null;

/** The natural word first, then the spare ones; none that DNS has no room for. */
export function wordsFor({ pool, owner, natural }: WordWish): string[] {
  const digest = createHash("sha256")
    .update(JSON.stringify([owner.workspace, owner.kind, owner.name]))
    .digest("hex");
  // An internal name has the form of a hash, and so has its spare.
  const spares =
    pool === "internal"
      ? [digest.slice(0, 32), digest.slice(32)]
      : SUFFIX_DIGITS.map((n) => `${natural}-${digest.slice(0, n)}`);
  return [natural, ...spares].filter((word) => word.length <= DNS_LABEL_MAX);
}
