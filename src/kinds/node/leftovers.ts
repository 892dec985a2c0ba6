/**
 * Workloads that a lost node may still run although another node has taken them over. They are written down when they
 * move, and the node ends them when it returns.
 */
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps, Platform } from "../port.ts";

/** A node that has not come back by then never does. */
const KEPT_MS = 10 * 365 * 24 * 60 * 60 * 1000;

interface Leftover {
  uid: string;
  /** uid of the resource that it was a workload of. */
  of: string;
}

const prefixOf = (node: string): string => `leftover/${node}/`;

export const workloadsOf = ({ uid, state }: Resource): string[] => {
  const { copies = [], instances = [] } = state as { copies?: { uid: string }[]; instances?: { uid: string }[] };
  return [...new Set([uid, ...copies.map((copy) => copy.uid), ...instances.map((instance) => instance.uid)])];
};

/** Called before the resource moves; a note about a workload that stays does no harm. */
export async function noteLeftovers(resource: Resource, { store, clock }: Platform): Promise<void> {
  const { node, uid: of } = resource;
  if (node === null) return;
  for (const uid of workloadsOf(resource)) {
    const value = JSON.stringify({ uid, of } satisfies Leftover);
    await store.records.update(`${prefixOf(node)}${uid}`, clock.now() + KEPT_MS, () => ({ value, result: undefined }));
  }
}

/** Ends the workloads of this machine that belong to another node now. */
export async function endLeftovers({ store, driver, nodes, log }: Deps, signal: AbortSignal): Promise<void> {
  if (nodes.shared || store.database.dialect === "sqlite") return;
  const end = async (uid: string): Promise<void> => {
    log.warn({ uid }, "a workload that another node has taken over is ended here");
    await driver.destroy(uid);
  };
  const ofOthers = async (of: string, uid: string): Promise<boolean> => {
    const resource = await store.resources.getAcrossWorkspaces(of);
    return !resource || !nodes.owns(resource.node) || !workloadsOf(resource).includes(uid);
  };
  for (const value of await store.records.list(prefixOf(nodes.self.id))) {
    signal.throwIfAborted();
    const { uid, of } = JSON.parse(value) as Leftover;
    if ((await driver.observe(uid)) && (await ofOthers(of, uid))) await end(uid);
    await store.records.remove(`${prefixOf(nodes.self.id)}${uid}`);
  }
  for (const { uid, log: tag } of await driver.list()) {
    signal.throwIfAborted();
    // A task belongs to its lease, whichever node has its job.
    if (tag?.executionId !== undefined) continue;
    const resource = await store.resources.getAcrossWorkspaces(tag?.uid ?? uid);
    if (resource && resource.node !== null && nodes.find(resource.node) && !nodes.owns(resource.node)) await end(uid);
  }
}
