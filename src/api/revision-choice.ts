/** Which revisions take the traffic: a choice among those that are kept, written in `spec.revision`. */
import { invalidField } from "../contract/errors.ts";
import type { Deps, Input } from "../kinds/port.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import type { Resource } from "../store/resource.ts";

interface Choice {
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
export async function followsLatest({ spec }: Input, { workspace, uid }: Resource, { store }: Deps): Promise<boolean> {
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

export function takeOver({ spec }: Input): void {
  delete (spec.revision as Choice | undefined)?.active;
}

const ALL_PERCENT = 100;

/** What a revision has of the traffic, as the record wants it. */
export function trafficOf({ spec, state, status }: Resource, latest: string | undefined) {
  const choice = (spec.revision ?? {}) as Choice;
  const active = choice.active || latest;
  const toCanary = choice.canary && choice.canary !== active ? (choice.canaryPercent ?? 0) : 0;
  return (id: string) => ({
    active: id === active,
    canary: id === choice.canary,
    previousActive: id === state.previousRevision,
    trafficPercent: id === active ? ALL_PERCENT - toCanary : id === choice.canary ? toCanary : 0,
    ...(id === active && status ? { status } : {}),
  });
}
