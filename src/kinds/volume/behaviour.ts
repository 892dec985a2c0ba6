import { PlatformError } from "../../contract/errors.ts";
import { toIso } from "../../lib/clock.ts";
import type { Behaviour } from "../port.ts";
import { VOLUME_SIZE_DEFAULT_MB, volume } from "./kind.ts";

export const volumeBehaviour: Behaviour = {
  kind: volume,
  prepare(input, { current, deps }) {
    if (current) return;
    input.spec.region ??= deps.settings.region;
    input.spec.size ??= VOLUME_SIZE_DEFAULT_MB;
    input.spec.infrastructureId = deps.settings.nodeId;
  },
  present(wire, resource) {
    if (resource.deletedAt !== null) wire.terminatedAt = toIso(resource.deletedAt);
  },
  async guardDelete({ name, state }) {
    if (typeof state.attachedTo === "string" && state.attachedTo !== "") {
      throw new PlatformError(
        "conflict",
        `Volume '${name}' is attached to ${state.attachedTo}. Delete that first, or detach the volume.`,
      );
    }
  },
};
