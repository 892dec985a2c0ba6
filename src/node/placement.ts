/** Chooses the node of a new workload. Pure: every rule is a row of the test table. */
import { PlatformError } from "../contract/errors.ts";
import type { NodeInfo } from "./nodes.ts";

/** Something that lies on a node and that the workload needs beside it: a volume, a drive. */
export interface Need {
  kind: string;
  name: string;
  node: string | null;
}

export interface PlacementAsk {
  needs: readonly Need[];
  /** The node that took the request. */
  self: string;
  nodes: readonly NodeInfo[];
}

/** A node with less of its memory available than this share is full. */
const FREE_SHARE_MIN = 0.1;

/**
 * A workload goes to the node of its volumes and drives; else to the node that took the request, unless that node is
 * drained, full or cannot run workloads; else to the node with the most free memory. Where all nodes are full, the node
 * that took the request keeps the workload.
 */
export function placementOf({ needs, self, nodes }: PlacementAsk): string {
  const bound = nodeOfNeeds(needs, nodes);
  if (bound !== null) return bound;
  const open = nodes.filter(({ live, drained, id }) => (live || id === self) && !drained);
  const able = open.filter(({ capabilities }) => capabilities.length > 0);
  const roomy = able.filter((node) => !isFull(node));
  for (const some of [roomy, able, open]) {
    if (some.some(({ id }) => id === self)) return self;
    const [best] = some.toSorted((a, b) => freeMb(b) - freeMb(a));
    if (best) return best.id;
  }
  throw new PlatformError(
    "unavailable",
    `No node takes new workloads: ${nodes.map(({ name, live }) => `${name} is ${live ? "drained" : "away"}`).join(", ")}.`,
  );
}

/** Null: the workload needs nothing that lies on a node. */
export function nodeOfNeeds(needs: readonly Need[], nodes: readonly NodeInfo[]): string | null {
  const [first, ...others] = needs.filter(({ node }) => node !== null);
  if (!first) return null;
  const other = others.find(({ node }) => node !== first.node);
  const nameOf = ({ node }: Need): string => nodes.find(({ id }) => id === node)?.name ?? String(node);
  if (other)
    throw new PlatformError(
      "conflict",
      `${first.kind} '${first.name}' is on node ${nameOf(first)} and ${other.kind} '${other.name}' is on node ${nameOf(other)}. A workload uses what is on one node.`,
    );
  return first.node;
}

const freeMb = ({ memoryMb, usedMb }: NodeInfo): number => memoryMb - usedMb;

const isFull = (node: NodeInfo): boolean => freeMb(node) < node.memoryMb * FREE_SHARE_MIN;
