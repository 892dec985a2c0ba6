/**
 * Workloads that a node still runs although another node has taken them over. They are written down when they move. A
 * drained node ends them when their requests are over; a lost node ends them when it returns.
 */
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps, Platform } from "../port.ts";
import type { DeployState } from "../workload/deploy-state.ts";

/** A node that has not come back by then never does. */
const KEPT_MS = 10 * 365 * 24 * 60 * 60 * 1000;

interface Leftover {
  uid: string;
  /** uid of the resource that it was a workload of. */
  of: string;
  /** Until then the workload may finish the requests that it has. Absent: it ends at once. */
  finishUntil?: number;
}

/** For a workload to end by itself. */
const GRACE_MS = 5_000;

const prefixOf = (node: string): string => `leftover/${node}/`;

export const workloadsOf = ({ uid, state }: { uid: string; state: DeployState }): string[] => {
  const { copies = [], instances = [] } = state;
  return [...new Set([uid, ...copies.map((copy) => copy.uid), ...instances.map((instance) => instance.uid)])];
};

/** Called before the resource moves; a note about a workload that stays does no harm. */
export async function noteLeftovers(resource: Resource, { store, clock }: Platform, finishMs?: number): Promise<void> {
  const { node, uid: of } = resource;
  if (node === null) return;
  const finish = finishMs === undefined ? {} : { finishUntil: clock.now() + finishMs };
  for (const uid of workloadsOf(resource)) {
    const value = JSON.stringify({ uid, of, ...finish } satisfies Leftover);
    await store.records.update(`${prefixOf(node)}${uid}`, clock.now() + KEPT_MS, () => ({ value, result: undefined }));
  }
}

/** Ends the workloads of this machine that belong to another node now. */
export async function endLeftovers(deps: Deps, signal: AbortSignal): Promise<void> {
  const { store, driver, nodes, log, activity, clock } = deps;
  if (nodes.shared || store.database.dialect === "sqlite") return;
  const end = async (uid: string, graceMs = 0): Promise<void> => {
    log.info({ uid }, "a workload that another node has taken over is ended here");
    await driver.destroy(uid, { graceMs });
    activity.forget(uid);
  };
  const finishing = new Set<string>();
  const ofOthers = async (of: string, uid: string): Promise<boolean> => {
    const resource = await store.resources.getAcrossWorkspaces(of);
    return !resource || !nodes.owns(resource.node) || !workloadsOf(resource).includes(uid);
  };
  for (const value of await store.records.list(prefixOf(nodes.self.id))) {
    signal.throwIfAborted();
    const { uid, of, finishUntil = 0 } = JSON.parse(value) as Leftover;
    const isLeft = (await driver.observe(uid)) !== null && (await ofOthers(of, uid));
    if (isLeft && activity.openOf(uid) > 0 && clock.now() < finishUntil) {
      finishing.add(uid);
      continue;
    }
    if (isLeft) await end(uid, finishUntil > 0 ? GRACE_MS : 0);
    await store.records.remove(`${prefixOf(nodes.self.id)}${uid}`);
  }
  for (const { uid, log: tag } of await driver.list()) {
    signal.throwIfAborted();
    // A task belongs to its lease, whichever node has its job.
    if (tag?.executionId !== undefined || finishing.has(uid)) continue;
    const resource = await store.resources.getAcrossWorkspaces(tag?.uid ?? uid);
    if (resource && resource.node !== null && nodes.find(resource.node) && !nodes.owns(resource.node)) await end(uid);
  }
}
