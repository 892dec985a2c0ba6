import { invalidField } from "../../contract/errors.ts";
import { toIso } from "../../lib/clock.ts";
import type { LinkOwner } from "../../store/links.ts";
import { type Behaviour, workspaceOf } from "../port.ts";
import { chosenRegion } from "../region.ts";
import { requireTemplate } from "../volume-template/versions.ts";
import { VOLUME_SIZE_DEFAULT_MB, volume } from "./kind.ts";
import { volumeReconciler } from "./reconcile.ts";

const MB = 1024 * 1024;

export const volumeBehaviour: Behaviour = {
  kind: volume,
  reconciled: "on-delete",
  reconciler: volumeReconciler,
  async prepare({ spec }, { call, current, deps, state }) {
    if (current) return;
    spec.region = chosenRegion("spec.region", spec.region, null, deps.settings);
    if (typeof spec.template === "string") {
      const where = workspaceOf(call).name;
      const { template, version } = await requireTemplate("spec.template", spec.template, where, deps);
      spec.size ??= template.spec.defaultSize;
      if ((version.contentSize ?? 0) > Number(spec.size ?? VOLUME_SIZE_DEFAULT_MB) * MB)
        throw invalidField("spec.size", `the files of '${spec.template}' do not fit into it`);
      // What it starts with does not change when the template does, or goes.
      state.content = version.source;
    }
    spec.size ??= VOLUME_SIZE_DEFAULT_MB;
    spec.infrastructureId = deps.settings.nodeId;
  },
  /** Whoever names a volume has it; nothing else has to be kept in step. */
  async gather(resources, { deps }) {
    const names = resources.map(({ name }) => name);
    return deps.store.links.usersOf(resources[0]?.workspace ?? "", volume.name, names);
  },
  present(wire, resource, { gathered }) {
    const [user] = (gathered as Map<string, LinkOwner[]>).get(resource.name) ?? [];
    if (user) wire.state = { attachedTo: `${user.kind}:${user.name}` };
    if (resource.deletedAt !== null) wire.terminatedAt = toIso(resource.deletedAt);
  },
};
