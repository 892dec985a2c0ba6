import type { z } from "zod";
import { notFound, PlatformError } from "../../contract/errors.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { NodeInfo } from "../../node/nodes.ts";
import { type Call, type Implementation, implement, type Platform } from "../port.ts";
import { PLACED_KINDS } from "./adopt.ts";
import { departureFrom } from "./drain.ts";
import { giveUp } from "./give-up.ts";
import { nodeDrain, nodeFindings, nodeGet, nodeList, nodeRemove, type nodeShape, nodeUndrain } from "./operations.ts";

export const nodeHandlers: readonly Implementation[] = [
  implement(nodeList, async (_call, deps) => {
    await deps.nodes.refresh();
    const counts = await deps.store.ownership.countOwned();
    return deps.nodes.list().map((node) => toWire(node, counts.get(node.id), deps));
  }),
  implement(nodeGet, async (call, deps) => shown(await find(call, deps), deps)),
  implement(nodeDrain, async (call, deps) => {
    const node = await setDrained(call, true, deps);
    return { ...(await shown(node, deps)), ...(await departureFrom(node, deps)) };
  }),
  implement(nodeUndrain, async (call, deps) => shown(await setDrained(call, false, deps), deps)),
  implement(nodeFindings, async (call, deps) => {
    const { id, name } = await find(call, deps);
    if (!deps.nodes.isLive(id))
      throw new PlatformError("unavailable", `Node ${name} is lost, so nothing can be checked on its machine.`);
    return deps.findingsOf(id);
  }),
  implement(nodeRemove, async (call, deps) => {
    const node = await find(call, deps);
    if (!deps.nodes.isLost(node.id))
      throw new PlatformError(
        "conflict",
        `Node ${node.name} is live, or was until a moment ago. Stop its server first, and wait until it is lost.`,
      );
    const left = await deps.store.ownership.listOwned(node.id, PLACED_KINDS, "", LEFT_SHOWN_MAX);
    if (left.length > 0 && call.query.force !== true)
      throw new PlatformError(
        "conflict",
        `Node ${node.name} has ${left.map(({ kind, name }) => `${kind} '${name}'`).join(", ")}${left.length === LEFT_SHOWN_MAX ? " and more" : ""}. They go on when the node returns; to give them up, remove it by force.`,
      );
    const wire = await shown(node, deps);
    await giveUp(node, call.caller.displayName, deps);
    if (!(await deps.store.nodes.remove(node.id, deps.nodes.lostAfterMs)))
      throw new PlatformError("conflict", `Node ${node.name} has returned in this moment.`);
    await deps.nodes.refresh();
    return wire;
  }),
];

/** Resources that a refusal names. */
const LEFT_SHOWN_MAX = 5;

async function find({ params }: Pick<Call, "params">, { nodes }: Platform): Promise<NodeInfo> {
  await nodes.refresh();
  const { node: asked = "" } = params;
  const found = nodes.find(asked);
  if (found) return found;
  const named = nodes.list().filter(({ name }) => name === asked);
  if (named.length > 1) throw new PlatformError("conflict", `Several nodes are called ${asked}. Use the id of one.`);
  if (!named[0]) throw notFound(`node '${asked}'`);
  return named[0];
}

async function setDrained(call: Pick<Call, "params">, drained: boolean, deps: Platform): Promise<NodeInfo> {
  const { id } = await find(call, deps);
  await deps.store.nodes.setDrained(id, drained);
  return find({ params: { node: id } }, deps);
}

const shown = async (node: NodeInfo, deps: Platform) =>
  toWire(node, (await deps.store.ownership.countOwned()).get(node.id), deps);

const toWire = (
  node: NodeInfo,
  resources: Record<string, number> | undefined,
  { nodes }: Platform,
): z.input<typeof nodeShape> => ({
  id: node.id,
  name: node.name,
  status: nodes.isLive(node.id) ? "live" : "lost",
  drained: node.drained,
  isSelf: node.id === nodes.self.id,
  ...(node.address === null ? {} : { address: node.address }),
  version: node.version,
  driver: node.driver,
  capabilities: [...node.capabilities],
  cpus: node.cpus,
  memoryMb: node.memoryMb,
  usedMb: node.usedMb,
  resources: resources ?? {},
  startedAt: toIso(node.startedAt),
  heartbeatAt: toIso(node.heartbeatAt),
});
