/** Puts a sandbox to sleep at a client's wish, whatever runs inside. */
import { PlatformError } from "../../contract/errors.ts";
import { need } from "../../node/capabilities/need.ts";
import { find } from "../place.ts";
import { implement } from "../port.ts";
import { settled } from "../snapshot/settled.ts";
import { sandbox } from "./kind.ts";
import { sandboxPause } from "./operations.ts";
import { stateOf } from "./recorded.ts";

export const pause = implement(sandboxPause, async (call, deps) => {
  const { resource } = await find(sandbox, call, deps);
  const { workspace, uid, name, status } = resource;
  if (resource.retired || resource.deletedAt !== null || status !== "DEPLOYED")
    throw new PlatformError("conflict", `sandbox '${name}' is ${status} and cannot be paused.`);
  await need(deps.here.driver, "freezing");
  const pausedAt = deps.clock.now();
  await deps.store.resources.update(workspace, uid, (current) =>
    stateOf(current).compute === "STANDBY" ? null : { state: { ...current.state, pausedAt } },
  );
  await settled(resource, (now) => now === null || stateOf(now).compute === "STANDBY" || isWoken(now, pausedAt), deps);
  const now = await deps.store.resources.getByUid(workspace, uid);
  const { compute = "RUNNING" } = now ? stateOf(now) : {};
  return { name, state: compute };
});

/** A request came at the same moment, and the sandbox is awake for it. */
const isWoken = (now: Parameters<typeof stateOf>[0], pausedAt: number): boolean =>
  (stateOf(now).idleSince ?? 0) > pausedAt;
