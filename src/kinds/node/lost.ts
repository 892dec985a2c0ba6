/**
 * Workloads of a node that is lost. Those without files of their own move to a live node; all others wait for their
 * node, and say so. Nothing is made anew with empty files unless its owner allowed that.
 */
import { PlatformError } from "../../contract/errors.ts";
import { linksOf } from "../../contract/references.ts";
import { placementOf } from "../../node/placement.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { NewEvent } from "../../store/resources/resources.ts";
import { KINDS } from "../index.ts";
import type { Deps, Platform } from "../port.ts";
import { sandboxElsewhere } from "../sandbox/elsewhere.ts";
import { keptAndLost } from "../sandbox/kept-and-lost.ts";
import { schedule } from "../schedule/kind.ts";
import { deployElsewhere } from "../workload/elsewhere.ts";
import { noteLeftovers, workloadsOf } from "./leftovers.ts";
import { BESIDE } from "./place-new.ts";

const PAGE = 500;
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
const WORKLOADS = Object.keys(ELSEWHERE);
/** A workload in one of these states is not missed. */
const AT_REST = new Set(["DEACTIVATED", "FAILED", "TERMINATED"]);

/** In the state of a workload that waits for its node. */
interface Away {
  /** The status to go on with. */
  status: string | null;
}

const awayOf = ({ state }: Resource): Away | undefined => state.away as Away | undefined;

export async function settleLostNodes(deps: Deps, signal: AbortSignal): Promise<void> {
  const { nodes, store } = deps;
  if (nodes.shared) return;
  for (const { id } of nodes.list()) {
    for (let after = ""; nodes.isLost(id); ) {
      const page = await store.ownership.listOwned(id, WORKLOADS, after, PAGE);
      for (const resource of page) {
        signal.throwIfAborted();
        if (!(await move(resource, `Node ${nodes.nameOf(id)} is lost.`, deps))) await waitForNode(resource, deps);
      }
      after = page.at(-1)?.uid ?? "";
      if (page.length < PAGE) break;
    }
  }
}

/** False: the workload cannot leave its node, or no node takes it. */
export async function move(resource: Resource, why: string, deps: Platform): Promise<boolean> {
  const { nodes, store } = deps;
  const elsewhere = ELSEWHERE[resource.kind];
  if (resource.node === null || !elsewhere?.(resource) || needsItsNode(resource)) return false;
  const target = targetFor(resource, deps);
  if (target === null) return false;
  const message = `${why} It goes on at node ${nodes.nameOf(target)}.`;
  const event: NewEvent = {
    type: "moved",
    message: resource.kind === "sandbox" ? `${message} ${keptAndLost(resource)}` : message,
  };
  await noteLeftovers(resource, deps);
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

/** Workloads of one lost node are spread over the others. */
function targetFor({ uid }: Resource, { nodes, settings }: Platform): string | null {
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

async function waitForNode({ workspace, uid, node }: Resource, { store, nodes }: Deps): Promise<void> {
  const message = `Node ${nodes.nameOf(node ?? "")} is not heard of. It goes on there, with its files, when the node returns.`;
  await store.resources.update(workspace, uid, (current) =>
    current.retired || current.node !== node || current.deletedAt !== null || AT_REST.has(current.status ?? "")
      ? null
      : {
          status: "DEACTIVATED",
          state: { ...current.state, away: { status: current.status } satisfies Away },
          event: { type: "node-lost", message },
        },
  );
}

/** Called by the node of the workload: takes up a workload that waited for this node. */
export async function welcomeBack(resource: Resource, { store, nodes, driver }: Deps): Promise<Resource> {
  if (!awayOf(resource) || !nodes.owns(resource.node)) return resource;
  const running = await Promise.all(workloadsOf(resource).map((uid) => driver.observe(uid)));
  const runs = running.some((workload) => workload !== null && workload.state !== "exited");
  const message = `Node ${nodes.self.name} is back${runs ? ", and it runs on there as it was" : ""}.`;
  const taken = await store.resources.update(resource.workspace, resource.uid, (current) => {
    const away = awayOf(current);
    if (!away || !nodes.owns(current.node)) return null;
    const { away: _, ...state } = current.state;
    const status = current.deletedAt === null ? { status: away.status } : {};
    return { ...status, state, event: { type: "node-returned", message } };
  });
  return taken ?? resource;
}
