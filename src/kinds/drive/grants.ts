/**
 * A drive's permissions name the labels of the workloads that may use it, so setting a workload's labels grants access
 * to drives. A caller may not grant more than the caller has. An admin may grant everything. A workload may give the
 * workloads it makes the same access as its own, or less. Other members may not set labels that give access to a drive.
 */
import { invalidField, PlatformError } from "../../contract/errors.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import { type Call, type Input, type Platform, type PrepareContext, workspaceOf } from "../port.ts";
import { type Drive, drive as driveKind } from "./kind.ts";
import { covers, driveAccess, workloadLabels } from "./permissions.ts";

type Labelled = Pick<Resource, "workspace" | "kind" | "name" | "metadata">;
type Labels = Readonly<Record<string, string>>;

/** Drives with permissions that are checked per workspace. Where there are more, only an admin sets labels. */
export const RULED_MAX = 1000;

export async function requireOwnGrants(kind: string, input: Input, { call, current, deps }: PrepareContext) {
  const name = current?.name ?? input.metadata.name ?? "";
  const labels = input.metadata.labels ?? current?.metadata.labels;
  const next = { workspace: workspaceOf(call).name, kind, name, metadata: { ...(labels && { labels }) } };
  await requireGrantable(next, current, call, deps);
}

/** Refuses labels that give a workload access which the caller may not grant. `before` is the workload as stored. */
export async function requireGrantable(
  next: Labelled,
  before: Labelled | null,
  call: Pick<Call, "caller" | "role">,
  deps: Platform,
): Promise<void> {
  if (call.role === "admin") return;
  const isWorkload = call.caller.subjectType === "workload";
  const had = before ?? { ...next, metadata: {} };
  // A rule can match the workload's name, so a workload that chooses a name for what it makes could choose its access.
  const sameName = !isWorkload || before?.name === next.name;
  if (sameName && sameLabels(next, had)) return;
  const { store, settings } = deps;
  const ruled = await store.resources.listWithSpecText(
    [next.workspace],
    [driveKind.name],
    ['"permissions":[{'],
    RULED_MAX + 1,
  );
  if (ruled.length === 0) return;
  if (ruled.length > RULED_MAX)
    throw new PlatformError(
      "forbidden",
      `metadata.labels: more than ${RULED_MAX} drives of this workspace have permissions, so only an admin sets labels.`,
    );
  const labels = (of: Labelled): Labels => workloadLabels(of, settings.brand);
  const own = isWorkload ? await ownLabels(next.workspace, call.caller.subject, deps) : null;
  const held = [...(before !== null || !isWorkload ? [labels(had)] : []), ...(own ? [own] : [])];
  for (const drive of ruled) {
    const rules = ofKind(driveKind, drive).spec.permissions;
    const wanted = driveAccess(rules, labels(next));
    if (!wanted || held.some((each) => covers(driveAccess(rules, each), wanted))) continue;
    throw new PlatformError(
      "forbidden",
      isWorkload
        ? `metadata.labels: the ${next.kind} could use drive '${drive.name}', and the workload that makes it cannot.`
        : `metadata.labels: they open drive '${drive.name}'. Only an admin sets labels that the permissions of a drive name.`,
    );
  }
}

/** Only an admin changes the permissions of an existing drive. */
export function requireSamePermissions({ spec }: Input<Drive>, { call, current }: PrepareContext<Drive>): void {
  if (call.role === "admin" || !current || sameJson(spec.permissions, current.spec.permissions)) return;
  if (spec.permissions === undefined && current.spec.permissions !== undefined)
    throw invalidField("spec.permissions", "must be sent as they are: only an admin takes them away");
  throw new PlatformError("forbidden", "spec.permissions: only an admin changes who may use a drive.");
}

async function ownLabels(workspace: string, subject: string, { store, settings }: Platform): Promise<Labels | null> {
  const identity = await store.keys.getServiceAccount(workspace, subject);
  const workload = identity?.workload ? await store.resources.getByUid(workspace, identity.workload) : null;
  return workload && workloadLabels(workload, settings.brand);
}

const sameLabels = (a: Labelled, b: Labelled): boolean => sameJson(a.metadata.labels ?? {}, b.metadata.labels ?? {});
const sameJson = (a: unknown, b: unknown): boolean => canonicalJson(a ?? null) === canonicalJson(b ?? null);
