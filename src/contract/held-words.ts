/**
 * Words by which the gateway finds a resource from a host name. A word is claimed when the resource is created and then
 * belongs to that workspace, kind and name for ever: no other owner gets it, not even after the resource is deleted,
 * and a resource created again under the same name has it again. When a natural word is taken, the resource gets a
 * spare one.
 */
import { createHash } from "node:crypto";
import { DNS_LABEL_MAX, WORKLOADS, type WorkloadKind, workloadLabel } from "./addresses.ts";
import { INTERNAL_KINDS, type InternalKind, internalHash } from "./internal-names.ts";

/**
 * Each pool is a separate namespace: the first labels of workloads' host names, those of previews (also their last path
 * segments), and the hashes in the internal names by which workloads call each other.
 */
export type WordPool = "workload" | "preview" | "internal";

/** The owner of a word. Its account is looked up by workspace when the word is claimed. */
export interface WordOwner {
  workspace: string;
  kind: string;
  /** Unique within workspace and kind; `sandbox/preview` for a preview. */
  name: string;
}

export interface WordWish {
  pool: WordPool;
  owner: WordOwner;
  /** The preferred word, used unless another owner has it. */
  natural: string;
}

/** State member with the resource's word when it is not the natural one; "" = it has none. */
export const HOST_LABEL = "hostLabel";

export const hostLabelOf = ({ state }: { state: Record<string, unknown> }): string | undefined =>
  typeof state[HOST_LABEL] === "string" ? state[HOST_LABEL] : undefined;

/**
 * Lengths of the hash suffix, in the order they are tried; a longer one only when a name already ends in the shorter.
 */
const SUFFIX_DIGITS = [8, 16, 32];

export const workloadWish = (owner: WordOwner): WordWish | null =>
  Object.hasOwn(WORKLOADS, owner.kind)
    ? { pool: "workload", owner, natural: workloadLabel(owner.kind as WorkloadKind, owner) }
    : null;

export const internalWish = (owner: WordOwner): WordWish | null =>
  INTERNAL_KINDS.some((kind) => kind === owner.kind)
    ? { pool: "internal", owner, natural: internalHash(owner.workspace, owner.kind as InternalKind, owner.name) }
    : null;

/** The natural word first, then the spare ones, without those that are too long for DNS. */
export function wordsFor({ pool, owner, natural }: WordWish): string[] {
  const digest = createHash("sha256")
    .update(JSON.stringify([owner.workspace, owner.kind, owner.name]))
    .digest("hex");
  // An internal name is a hash, and so are its spares.
  const spares =
    pool === "internal"
      ? [digest.slice(0, 32), digest.slice(32)]
      : SUFFIX_DIGITS.map((n) => `${natural}-${digest.slice(0, n)}`);
  return [natural, ...spares].filter((word) => word.length <= DNS_LABEL_MAX);
}
