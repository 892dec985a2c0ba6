/** The node of a new resource, and whether what a resource names is beside it. */
import type { Kind } from "../../contract/kind.ts";
import type { Link } from "../../contract/references.ts";
import { firmNeeds, type Need, nodeOfNeeds, placementOf } from "../../node/placement.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { ListScope } from "../../store/resources/search-grams.ts";
import type { Platform } from "../port.ts";

/** Kinds whose files a workload uses, and which are on one node. */
export const BESIDE: ReadonlySet<string> = new Set(["volume", "drive"]);

interface NewResource {
  kind: Kind;
  scope: ListScope;
  parents: readonly Resource[];
  links: readonly Link[];
}

/** Null for kinds that belong to no machine, and where any node can act on any workload. */
export async function nodeOfNew({ kind, scope, parents, links }: NewResource, deps: Platform): Promise<string | null> {
  const { nodes } = deps;
  if (!kind.placed || nodes.shared) return null;
  const container = parents.at(-1)?.node;
  if (container) return container;
  const needs = isAlone(deps) ? [] : await needsOf(links, scope.workspace, deps);
  return placementOf({ needs, self: nodes.self.id, nodes: nodes.list(), fullShare: deps.settings.nodeFullShare });
}

/** Refuses links to volumes, and to drives that cannot be mounted from afar, that are not on the node of the resource. */
export async function requireBeside(
  resource: Pick<Resource, "kind" | "name" | "workspace" | "node">,
  links: readonly Link[],
  deps: Platform,
): Promise<void> {
  if (resource.node === null || isAlone(deps)) return;
  const { kind, name, node } = resource;
  const nodes = deps.nodes.list();
  const needs = firmNeeds(await needsOf(links, resource.workspace, deps), nodes);
  if (needs.length > 0) nodeOfNeeds([{ kind, name, node }, ...needs], nodes);
}

/** Everything is on the one node there is. */
const isAlone = ({ store }: Platform): boolean => store.database.dialect === "sqlite";

async function needsOf(links: readonly Link[], workspace: string, { store }: Platform): Promise<Need[]> {
  const needs: Need[] = [];
  for (const { kind, name, to } of links) {
    if (to !== "resource" || !BESIDE.has(kind)) continue;
    const found = await store.resources.get({ workspace, kind, parent: "" }, name);
    if (found) needs.push({ kind, name, node: found.node });
  }
  return needs;
}
