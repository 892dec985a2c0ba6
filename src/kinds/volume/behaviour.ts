import { toIso } from "../../lib/clock.ts";
import type { LinkOwner } from "../../store/links.ts";
import type { Behaviour } from "../port.ts";
import { VOLUME_SIZE_DEFAULT_MB, volume } from "./kind.ts";
import { volumeReconciler } from "./reconcile.ts";

export const volumeBehaviour: Behaviour = {
  kind: volume,
  reconciled: "on-delete",
  reconciler: volumeReconciler,
  prepare(input, { current, deps }) {
    if (current) return;
    input.spec.region ??= deps.settings.region;
    input.spec.size ??= VOLUME_SIZE_DEFAULT_MB;
    input.spec.infrastructureId = deps.settings.nodeId;
  },
  /** Whoever names a volume has it; nothing else has to be kept in step. */
  async gather(resources, { deps }) {
    const workspace = resources[0]?.workspace ?? "";
    return deps.store.links.usersOf(
      workspace,
      volume.name,
      resources.map(({ name }) => name),
    );
  },
  present(wire, resource, { gathered }) {
    const [user] = (gathered as Map<string, LinkOwner[]>).get(resource.name) ?? [];
    if (user) wire.state = { attachedTo: `${user.kind}:${user.name}` };
    if (resource.deletedAt !== null) wire.terminatedAt = toIso(resource.deletedAt);
  },
};
