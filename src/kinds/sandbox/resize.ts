/** Changes the limits of a sandbox without a restart: checks the wish, and waits until the reconciler has performed it. */
import { randomUUID } from "node:crypto";
import { PlatformError } from "../../contract/errors.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { find } from "../place.ts";
import { requirePlaced } from "../policy/placement.ts";
import { implement, type Platform } from "../port.ts";
import { settled } from "../snapshot/settled.ts";
import { limitsFor, requireCpus } from "../workload/limits.ts";
import { settledMemoryMb } from "../workload/memory.ts";
import { sandbox } from "./kind.ts";
import { sandboxResize } from "./operations.ts";
import { stateOf } from "./recorded.ts";
import { sizeOf } from "./resize-step.ts";
import type { Size } from "./state.ts";

export const resize = implement(sandboxResize, async (call, deps) => {
  const { resource } = await find(sandbox, call, deps);
  const { workspace, uid, name } = resource;
  requireDeployed(resource);
  await need(deps.here.driver, "resizing");
  const named = given(call.body);
  await requireAllowed(resource, named, deps);
  const id = randomUUID();
  const asked = await deps.store.resources.update(workspace, uid, (current) => {
    requireDeployed(current);
    if (stateOf(current).resize) throw new PlatformError("conflict", `sandbox '${name}' is being resized already.`);
    const from = sizeOf(current);
    const state = { ...current.state, resize: { id, from, to: { ...from, ...named } } };
    return { state, actor: call.caller.displayName };
  });
  const to = asked && stateOf(asked).resize?.to;
  if (!to) throw gone(name);
  await settled(resource, (now) => now === null || now.deletedAt !== null || outcomeOf(now, id) !== null, deps);
  const now = await deps.store.resources.getByUid(workspace, uid);
  const outcome = now && outcomeOf(now, id);
  if (!outcome) throw gone(name);
  if (outcome.code !== undefined) throw new PlatformError(outcome.code, `sandbox '${name}': ${outcome.message}`);
  const { memoryMb, cpus } = limitsFor(to.memory, to.cpus);
  return { name, memory: memoryMb, cpus };
});

function requireDeployed({ name, status, retired, deletedAt }: Resource): void {
  if (retired || deletedAt !== null || status !== "DEPLOYED")
    throw new PlatformError("conflict", `sandbox '${name}' is ${status} and cannot be resized.`);
}

/** What the machine has, and the policies of the sandbox. Quotas count sandboxes, and a resize makes none. */
async function requireAllowed(resource: Resource, asked: Partial<Size>, deps: Platform): Promise<void> {
  const current = sizeOf(resource).memory;
  const { settings, nodes } = deps;
  if (asked.memory !== undefined) settledMemoryMb("memory", asked.memory, { current, defaultMb: current, settings });
  requireCpus("cpus", asked.cpus, [nodes.self]);
  await requirePlaced(resource, deps);
}

/** The members that the client named. */
const given = ({ memory, cpus }: { memory?: number | undefined; cpus?: number | undefined }): Partial<Size> => ({
  ...(memory === undefined ? {} : { memory }),
  ...(cpus === undefined ? {} : { cpus }),
});

function outcomeOf(now: Resource, id: string) {
  const { resizeOutcome } = stateOf(now);
  return resizeOutcome?.id === id ? resizeOutcome : null;
}

const gone = (name: string): PlatformError =>
  new PlatformError("conflict", `sandbox '${name}' ended before it was resized.`);
