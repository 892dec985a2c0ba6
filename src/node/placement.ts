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
  /** Share of a node's memory in use from which the node is full; 1 = never. */
  fullShare: number;
}

/** Drivers that mount drives of other nodes. */
const FROM_AFAR: ReadonlySet<string> = new Set(["local"]);

/** Whether a drive of any node can be mounted on any other. */
export const mountsFromAfar = (nodes: readonly NodeInfo[]): boolean =>
  nodes.every(({ driver }) => FROM_AFAR.has(driver));

/** What has to be on the node of the workload: volumes, and drives where no node mounts those of another. */
export const firmNeeds = (needs: readonly Need[], nodes: readonly NodeInfo[]): Need[] =>
  needs.filter(({ kind }) => kind !== "drive" || !mountsFromAfar(nodes));

/**
 * A workload goes to the node of its volumes; else to the node of its first drive, unless that node is drained or
 * cannot run workloads; else to the node that took the request, unless that node is
 * drained, full or cannot run workloads; else to the node with the most free memory. Where all nodes are full, the node
 * that took the request keeps the workload.
 */
export function placementOf({ needs, self, nodes, fullShare }: PlacementAsk): string {
  const bound = nodeOfNeeds(firmNeeds(needs, nodes), nodes);
  const lost = needs.find(
    ({ node }) => node !== null && node !== self && !nodes.some(({ id, live }) => id === node && live),
  );
  if (lost)
    throw new PlatformError(
      "unavailable",
      `${lost.kind} '${lost.name}' is on a node that is away: ${nameOf(lost.node, nodes)}.`,
    );
  if (bound !== null) return bound;
  const open = nodes.filter(({ live, drained, id }) => (live || id === self) && !drained);
  const able = open.filter(({ runs }) => runs);
  const beside = needs.find(({ node }) => node !== null)?.node;
  if (beside && able.some(({ id }) => id === beside)) return beside;
  const roomy = able.filter(({ usedMb, memoryMb }) => fullShare >= 1 || usedMb < memoryMb * fullShare);
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
  if (other)
    throw new PlatformError(
      "conflict",
      `${first.kind} '${first.name}' is on node ${nameOf(first.node, nodes)} and ${other.kind} '${other.name}' is on node ${nameOf(other.node, nodes)}. A workload uses what is on one node.`,
    );
  return first.node;
}

const nameOf = (node: string | null, nodes: readonly NodeInfo[]): string =>
  nodes.find(({ id }) => id === node)?.name ?? String(node);

const freeMb = ({ memoryMb, usedMb }: NodeInfo): number => memoryMb - usedMb;
