/**
 * Takes a node out of service: agents, functions, applications and jobs go on at other nodes. Sandboxes, volumes, drives
 * and workloads that use them stay, because their files are there.
 */
import type { NodeInfo } from "../../node/nodes.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps, Platform } from "../port.ts";
import { sandbox } from "../sandbox/kind.ts";
import { schedule } from "../schedule/kind.ts";
import { DRAIN_MAX_MS } from "../workload/deploy-plan.ts";
import { PLACED_KINDS } from "./adopt.ts";
import { canMove, MOVING_KINDS, move, targetFor } from "./move.ts";

const PAGE = 500;
/** Resources that an answer names. */
const NAMED_MAX = 100;

/** A sandbox that may be made anew when its node is lost has its files while the node lives. */
const DRAINED_KINDS = MOVING_KINDS.filter((kind) => kind !== sandbox.name);
/** A schedule is where its sandbox is. */
const COUNTED_KINDS = PLACED_KINDS.filter((kind) => kind !== schedule.name);

/** Whether a drain takes the workload away from its node. */
export const leavesDrained = (resource: Resource): boolean =>
  DRAINED_KINDS.includes(resource.kind) && canMove(resource);

export async function emptyDrainedNodes(deps: Deps, signal: AbortSignal): Promise<void> {
  const { nodes, store } = deps;
  if (nodes.shared) return;
  for (const { id, name } of nodes.list().filter(({ drained }) => drained)) {
    for (let after = ""; nodes.isLive(id); ) {
      const page = await store.ownership.listOwned(id, DRAINED_KINDS, after, PAGE);
      for (const resource of page) {
        signal.throwIfAborted();
        await move(resource, { why: `Node ${name} is drained.`, finishMs: DRAIN_MAX_MS }, deps);
      }
      after = page.at(-1)?.uid ?? "";
      if (page.length < PAGE) break;
    }
  }
}

export interface Departure {
  /** How many workloads go on at other nodes. */
  moves: number;
  /** The first resources that stay. */
  stays: { kind: string; workspace: string; name: string }[];
  staysCount: number;
}

/** What a drain of the node will move, and what it leaves there. */
export async function departureFrom({ id }: NodeInfo, deps: Platform): Promise<Departure> {
  const { store, nodes } = deps;
  const departure: Departure = { moves: 0, stays: [], staysCount: 0 };
  if (nodes.shared) return departure;
  for (let after = ""; ; ) {
    const page = await store.ownership.listOwned(id, COUNTED_KINDS, after, PAGE);
    for (const resource of page) {
      const { kind, workspace, name } = resource;
      if (leavesDrained(resource) && targetFor(resource, deps) !== null) departure.moves += 1;
      else if (departure.staysCount++ < NAMED_MAX) departure.stays.push({ kind, workspace, name });
    }
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) return departure;
  }
}
