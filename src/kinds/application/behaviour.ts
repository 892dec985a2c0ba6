import { invalidField } from "../../contract/errors.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { Revision } from "../../store/resources/revision.ts";
import { requireOwnGrants } from "../drive/grants.ts";
import { type Behaviour, type PrepareContext, workspaceOf } from "../port.ts";
import { requireEntry } from "../sandbox/kept.ts";
import { snapshot as snapshotKind } from "../snapshot/kind.ts";
import { deployed, settleRegion } from "../workload/behaviour.ts";
import { preparedEnvs } from "../workload/envs.ts";
import { settledMemoryMb } from "../workload/memory.ts";
import { prepareNetwork } from "../workload/network.ts";
import { requireNetwork } from "../workload/network-place.ts";
import { MEMORY_DEFAULT_MB } from "../workload/spec.ts";
import { prepareUrls, urlClaims } from "../workload/urls.ts";
import { type Application, application } from "./kind.ts";

const PORT_DEFAULT = 8080;
/** Members of the spec that are stored per revision. */
const REVISION_MEMBERS = ["image", "memory", "port", "envs", "snapshot", "command", "workingDir"] as const;

type Json = Record<string, unknown>;

export const applicationBehaviour: Behaviour<Application, Revision[]> = {
  kind: application,
  async prepare(input, context) {
    const { spec } = input;
    liftFirstRevision(spec);
    spec.enabled ??= true;
    spec.proxy ??= false;
    const { settings } = context.deps;
    const memory = { current: context.current?.spec.memory, defaultMb: MEMORY_DEFAULT_MB, settings };
    spec.memory = settledMemoryMb("spec.memory", spec.memory, memory);
    spec.port ??= PORT_DEFAULT;
    settleRegion(input, context);
    prepareNetwork(input);
    await requireNetwork(input, context);
    await requireSnapshot(spec.snapshot, context);
    await requireOwnGrants(application.name, input, context);
    if (spec.envs) spec.envs = preparedEnvs(spec.envs, "spec.envs", context.current?.spec.envs);
    await prepareUrls(input, context);
  },
  ...deployed,
  claims: urlClaims,
  /** A single read shows the revisions; a list leaves them out. */
  async gather([resource], { deps, inList }) {
    return resource && !inList ? deps.store.resources.revisionsOf(resource.workspace, resource.uid) : [];
  },
  present(wire, _resource, { gathered, inList }) {
    if (!inList) wire.spec.revisions = gathered.map(appRevision);
  },
  presentRevision: appRevision,
};

/** Allows a snapshot of this workspace's own sandboxes that still exists, or one that a revision already runs from. */
async function requireSnapshot(
  id: string | undefined,
  { call, current, deps }: PrepareContext<Application>,
): Promise<void> {
  if (id === undefined || id === current?.spec.snapshot) return;
  const workspace = workspaceOf(call).name;
  const { resources } = deps.store;
  const [kept] = await resources.listNamed(workspace, snapshotKind.name, id);
  const origin = kept && (await resources.getByUid(workspace, kept.parent));
  if (origin) requireEntry(origin, call);
  if (kept && kept.state.phase === "ready") return;
  const revisions = current ? await resources.revisionsOf(workspace, current.uid) : [];
  if (revisions.some(({ spec }) => spec.snapshot === id)) return;
  throw invalidField("spec.snapshot", `there is no snapshot '${id}' of a sandbox in this workspace`);
}

function appRevision({ id, createdAt, createdBy, spec }: Revision): Json {
  const members = REVISION_MEMBERS.filter((key) => spec[key] !== undefined).map((key) => [key, spec[key]]);
  return { id, createdAt: toIso(createdAt), createdBy, ...Object.fromEntries(members) };
}

/** Clients send the configuration at the top level or in `revisions[0]`. Where both are sent, the top level wins. */
function liftFirstRevision(spec: Application["spec"]): void {
  const [first] = spec.revisions ?? [];
  delete spec.revisions;
  for (const key of REVISION_MEMBERS)
    if (spec[key] === undefined && first?.[key] !== undefined) Object.assign(spec, { [key]: first[key] });
}
