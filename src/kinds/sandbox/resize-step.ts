/**
 * Performs a resize that a client asked for. The wish stays in the record until the machine holds the new limits, so a
 * server that is killed in between finds it at its next start and finishes or refuses it.
 */
import { isDeepStrictEqual } from "node:util";
import { PlatformError } from "../../contract/errors.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Observed } from "../../node/workload.ts";
import type { Modification } from "../../store/resources/resources.ts";
import type { Deps, ReconcileContext } from "../port.ts";
import { limitsFor } from "../workload/limits.ts";
import type { Sandbox } from "./kind.ts";
import { fingerprint, isDeployedAs } from "./plan.ts";
import { startOf } from "./start.ts";
import type { ResizeIntent, Size } from "./state.ts";

export function sizeOf(sandbox: Pick<Sandbox, "spec">): Size {
  const { memory, cpus } = startOf(sandbox);
  return cpus === undefined ? { memory } : { memory, cpus };
}

export async function applyResize(sandbox: Sandbox, { deps, record }: ReconcileContext<Sandbox>): Promise<void> {
  const { resize } = sandbox.state;
  if (!resize) return;
  const resized = await changeLimits(sandbox, resize, deps);
  const atMs = deps.clock.now();
  await record((current) => {
    if (resized instanceof PlatformError) return refused(current, resize, resized);
    // A change of the memory that came meanwhile creates the sandbox again.
    if (!isDeepStrictEqual(sizeOf(current), resize.from)) return refused(current, resize, overtaken());
    return done(current, resize, resized, atMs, deps);
  });
}

/** A sandbox that starts has the limits of its record, and a wish from before is over. */
export async function dropResize(sandbox: Sandbox, { record }: ReconcileContext<Sandbox>): Promise<void> {
  const { resize } = sandbox.state;
  if (resize) await record((current) => refused(current, resize, overtaken()));
}

async function changeLimits(
  sandbox: Sandbox,
  { from, to }: ResizeIntent,
  { driver }: Pick<Deps, "driver">,
): Promise<Observed | PlatformError> {
  if (!isDeepStrictEqual(sizeOf(sandbox), from)) return overtaken();
  try {
    return await (await need(driver, "resizing")).resize(sandbox.uid, limitsFor(to.memory, to.cpus));
  } catch (error) {
    if (error instanceof PlatformError && error.status < 500) return error;
    throw error;
  }
}

function done(
  current: Sandbox,
  { id, from, to }: ResizeIntent,
  { state: machine }: Observed,
  atMs: number,
  { store }: Pick<Deps, "store">,
): Modification {
  const { state } = current;
  const secrets = store.resources.secretsOf(current);
  const spec = { ...current.spec, runtime: { ...current.spec.runtime, ...to } };
  // A sandbox that has to be created again for another reason still has to be.
  const isCurrent = isDeployedAs(state.deployed, fingerprint(current, secrets));
  const before = limitsFor(from.memory, from.cpus);
  const after = limitsFor(to.memory, to.cpus);
  return {
    spec,
    state: {
      ...state,
      resize: undefined,
      resizeOutcome: { id },
      ...(isCurrent ? { deployed: fingerprint({ spec }, secrets) } : {}),
      ...(machine === "running" ? { resized: { atMs, memory: to.memory } } : {}),
    },
    event: {
      type: "resized",
      message: `Without a restart: memory ${before.memoryMb} → ${after.memoryMb} MB, processors ${before.cpus} → ${after.cpus}.`,
    },
  };
}

const refused = (current: Sandbox, { id }: ResizeIntent, { code, message }: PlatformError): Modification => ({
  state: { ...current.state, resize: undefined, resizeOutcome: { id, code, message } },
});

const overtaken = (): PlatformError =>
  new PlatformError("conflict", "The sandbox was started anew or changed meanwhile. Read it, and ask again.");
