/** Gives a workload to another node, with all that it takes along. */
import { PlatformError } from "../../contract/errors.ts";
import { linksOf } from "../../contract/references.ts";
import { placementOf } from "../../node/placement.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { NewEvent } from "../../store/resources/resources.ts";
import { KINDS } from "../index.ts";
import type { Platform } from "../port.ts";
import { sandboxElsewhere } from "../sandbox/elsewhere.ts";
import { keptAndLost } from "../sandbox/kept-and-lost.ts";
import { schedule } from "../schedule/kind.ts";
import { deployElsewhere } from "../workload/elsewhere.ts";
import { noteLeftovers } from "./leftovers.ts";
import { BESIDE } from "./place-new.ts";

/** Schedules of one sandbox. */
const CHILDREN_MAX = 10_000;

/** The state that a workload has on another node, by kind; null where the workload waits for its own. */
const ELSEWHERE: Readonly<Record<string, (resource: Resource) => Record<string, unknown> | null>> = {
  sandbox: sandboxElsewhere,
  agent: deployElsewhere,
  function: deployElsewhere,
  application: deployElsewhere,
  job: deployElsewhere,
};
export const MOVING_KINDS = Object.keys(ELSEWHERE);

export interface Moving {
  /** The first sentence of the event. */
  why: string;
  /** How long copies on the node that is left may finish their requests. Default: they end at once. */
  finishMs?: number;
}

/** Whether the workload has nothing on its node that it cannot be without. */
export const canMove = (resource: Resource): boolean =>
  resource.node !== null && Boolean(ELSEWHERE[resource.kind]?.(resource)) && !needsItsNode(resource);

/** False: the workload cannot leave its node, or no node takes it. */
export async function move(resource: Resource, { why, finishMs }: Moving, deps: Platform): Promise<boolean> {
  const { nodes, store } = deps;
  const elsewhere = ELSEWHERE[resource.kind];
  if (!elsewhere || !canMove(resource)) return false;
  const target = targetFor(resource, deps);
  if (target === null) return false;
  const message = `${why} It goes on at node ${nodes.nameOf(target)}.`;
  const event: NewEvent = {
    type: "moved",
    message: resource.kind === "sandbox" ? `${message} ${keptAndLost(resource)}` : message,
  };
  await noteLeftovers(resource, deps, finishMs);
  await store.write(async (tx) => {
    const moved = await store.resources.modify(tx, resource.workspace, resource.uid, (current) => {
      const state = current.retired || current.node !== resource.node ? null : elsewhere(current);
      if (!state) return null;
      const { away, ...rest } = state;
      const isOff = current.deletedAt !== null || current.spec.enabled === false;
      // Unsettled, so that the loop of its new node takes it up.
      return { node: target, state: rest, event, observedGeneration: 0, ...(isOff ? {} : { status: "DEPLOYING" }) };
    });
    if (moved?.node !== target) return;
    for (const child of await store.resources.childrenIn(tx, resource.uid, CHILDREN_MAX, schedule.name))
      await store.resources.modify(tx, child.workspace, child.uid, () => ({ node: target }));
  });
  return true;
}

/** Volumes and drives that it uses are on its node, or nowhere. */
function needsItsNode(resource: Resource): boolean {
  const kind = KINDS.find(({ name }) => name === resource.kind);
  return linksOf(resource, kind?.references ?? []).some((link) => BESIDE.has(link.kind));
}

/** Spreads the workloads of one node over the others. Null: no live node takes workloads. */
export function targetFor({ uid }: Resource, { nodes, settings }: Platform): string | null {
  const live = nodes.list().filter(({ id, drained }) => nodes.isLive(id) && !drained);
  const turn = Number.parseInt(uid.replaceAll("-", "").slice(-6), 16) % Math.max(live.length, 1);
  const self = live[turn]?.id;
  if (self === undefined) return null;
  try {
    return placementOf({ needs: [], self, nodes: live, fullShare: settings.nodeFullShare });
  } catch (error) {
    if (error instanceof PlatformError) return null;
    throw error;
  }
}
