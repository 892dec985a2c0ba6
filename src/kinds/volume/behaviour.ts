import { setImmediate as nextTurn } from "node:timers/promises";
import { invalidField } from "../../contract/errors.ts";
import { toIso } from "../../lib/time/clock.ts";
import { refuseWithout } from "../../node/capabilities/need.ts";
import type { LinkOwner } from "../../store/resources/links.ts";
import { type Behaviour, type Platform, workspaceOf } from "../port.ts";
import { chosenRegion } from "../region.ts";
import { requireTemplate } from "../volume-template/versions.ts";
import { checkCron } from "../workload/cron.ts";
import { SCHEDULED_KEPT_DEFAULT, VOLUME_SIZE_DEFAULT_MB, type Volume, volume } from "./kind.ts";
import { volumeReconciler } from "./reconcile.ts";

const MB = 1024 * 1024;

interface Gathered {
  users: Map<string, LinkOwner[]>;
  /** Whether this machine enforces the size of new volumes; null when that is not known yet. */
  sized: boolean | null;
}

export const volumeBehaviour: Behaviour<Volume, Gathered> = {
  kind: volume,
  reconciled: "on-delete",
  timed: true,
  // Its snapshots would be gone with it.
  childrenFirst: true,
  reconciler: volumeReconciler,
  async prepare({ spec }, { call, current, deps, state }) {
    const { snapshots } = spec;
    if (snapshots) {
      await refuseWithout(deps.here.driver, "volumeCopies");
      checkCron("spec.snapshots.schedule", snapshots);
      snapshots.keep ??= SCHEDULED_KEPT_DEFAULT;
    }
    if (current) return;
    await refuseWithout(deps.here.driver, "volumes");
    spec.region = chosenRegion("spec.region", spec.region, null, deps.settings);
    if (spec.template !== undefined) {
      const where = workspaceOf(call).name;
      const { template, version } = await requireTemplate("spec.template", spec.template, where, deps);
      spec.size ??= template.spec.defaultSize;
      if ((version.contentSize ?? 0) > (spec.size ?? VOLUME_SIZE_DEFAULT_MB) * MB)
        throw invalidField("spec.size", `the files of '${spec.template}' do not fit into it`);
      // Stored now, so that a later change or deletion of the template does not affect the volume.
      state.content = version.source;
    }
    spec.size ??= VOLUME_SIZE_DEFAULT_MB;
  },
  /** The users of a volume are found by their references to it; nothing is stored with the volume. */
  async gather(resources, { deps }) {
    const names = resources.map(({ name }) => name);
    const users = await deps.store.links.usersOf(resources[0]?.workspace ?? "", volume.name, names);
    const isNoted = resources.every(({ state }) => state.sized !== undefined);
    return { users, sized: isNoted ? null : await sizesHold(deps) };
  },
  present(wire, resource, { gathered }) {
    const { users, sized } = gathered;
    const [user] = users.get(resource.name) ?? [];
    const isSized = resource.state.sized ?? sized;
    if (isSized !== null) wire.sized = isSized;
    if (user) wire.state = { ...(wire.state as object), attachedTo: `${user.kind}:${user.name}` };
    if (resource.deletedAt !== null) wire.terminatedAt = toIso(resource.deletedAt);
  },
};

/** Returns null while the driver is still opening; an open driver answers within this event loop turn. */
const sizesHold = ({ here }: Platform): Promise<boolean | null> =>
  Promise.race([
    here.driver.probe().then(
      ({ volumes }) => volumes === "sized",
      () => null,
    ),
    nextTurn(null),
  ]);
