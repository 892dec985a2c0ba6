/** Which revisions take the traffic: a choice among those that are kept, written in `spec.revision`. */
import { invalidField } from "../contract/errors.ts";
import type { Input, Platform } from "../kinds/port.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import type { Resource } from "../store/resources/resource.ts";

export interface Choice {
  active?: string;
  canary?: string;
  canaryPercent?: number;
}

type Secrets = Record<string, string>;

/** A new resource has one revision and nothing to choose from: what an export of another says is left out. */
export function dropChoice({ spec }: Input): void {
  if (!spec.revision) return;
  const { active: _active, canary: _canary, ...rest } = spec.revision as Choice;
  spec.revision = rest;
}

/**
 * Refuses what is not kept. True when the latest revision is the active one by name: the next deployment then takes
 * over from it, as it does when none is named.
 */
export async function followsLatest(
  { spec }: Input,
  { workspace, uid }: Resource,
  { store }: Platform,
): Promise<boolean> {
  const choice = spec.revision as Choice | undefined;
  if (choice?.active === undefined && choice?.canary === undefined) return false;
  const kept = (await store.resources.revisionsOf(workspace, uid)).map(({ id }) => id);
  for (const key of ["active", "canary"] as const) {
    const id = choice[key];
    if (id !== undefined && id !== "" && !kept.includes(id))
      throw invalidField(`spec.revision.${key}`, `there is no revision '${id}'; kept are ${kept.join(", ")}`);
  }
  return choice.active === kept[0];
}

/** The traffic is a choice among revisions, not one more of them. */
export function isNewRevision(
  { spec: { revision: _wanted, ...next } }: Input,
  { spec: { revision: _had, ...before } }: Resource,
  secrets: Secrets,
  stored: Secrets,
): boolean {
  return canonicalJson([next, secrets]) !== canonicalJson([before, stored]);
}

/** The newest takes all that the one before it had, and a trial of an older one ends with that. */
export function takeOver({ spec }: Input): void {
  const choice = spec.revision as Choice | undefined;
  for (const key of ["active", "canary", "canaryPercent"] as const) delete choice?.[key];
}

/**
 * What a deployment that says nothing of the traffic leaves as it is: somebody has put it on a revision that is not the
 * latest. Null when the deployment takes over.
 */
export async function standingChoice({ spec }: Input, current: Resource, { store }: Platform): Promise<Choice | null> {
  const { active, canary } = (spec.revision ?? {}) as Choice;
  const had = (current.spec.revision ?? {}) as Choice;
  if (active !== undefined || canary !== undefined || !had.active) return null;
  const [latest] = await store.resources.revisionsOf(current.workspace, current.uid);
  return had.active === latest?.id ? null : had;
}

const ALL_PERCENT = 100;

/** What a revision has of the traffic, as the record wants it. */
export function trafficOf({ spec, state, status }: Resource, latest: string | undefined) {
  const choice = (spec.revision ?? {}) as Choice;
  // What answers, whatever was wanted: a deployment that failed, or is on its way, has no traffic yet.
  const { activeRevision } = state as { activeRevision?: string };
  const active = activeRevision ?? (choice.active || latest);
  const toCanary = choice.canary && choice.canary !== active ? (choice.canaryPercent ?? 0) : 0;
  return (id: string) => ({
    active: id === active,
    canary: id === choice.canary,
    previousActive: id === state.previousRevision,
    trafficPercent: id === active ? ALL_PERCENT - toCanary : id === choice.canary ? toCanary : 0,
    ...(id === active && status ? { status } : {}),
  });
}
