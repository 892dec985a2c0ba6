/** Which revisions take the traffic: a choice among those that are kept, written in `spec.revision`. */
import { invalidField } from "../contract/errors.ts";
import { ALL_PERCENT, choiceOf, liveCanary, type RevisionChoice, sharedChoice } from "../contract/revision-share.ts";
import type { Input, Platform } from "../kinds/port.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import type { Resource } from "../store/resources/resource.ts";

type Secrets = Record<string, string>;

/**
 * A new resource has one revision and nothing to choose from: what an export of another says is left out. Returns a
 * sentence for each member that does nothing.
 */
export function dropChoice({ spec }: Input): string[] {
  if (!spec.revision) return [];
  const { active, canary, ...rest } = choiceOf({ spec });
  spec.revision = rest;
  const named = Object.entries({ active, canary }).filter(([, id]) => id);
  return [
    ...named.map(([key, id]) => `spec.revision.${key} '${id}' is left out: a new resource has one revision.`),
    ...(!canary && rest.canaryPercent ? [NO_CANARY] : []),
    ...(rest.traffic !== undefined && rest.traffic < ALL_PERCENT ? [FIRST_TAKES_ALL] : []),
  ];
}

const NO_CANARY = "spec.revision.canaryPercent is kept and has no effect: spec.revision.canary names no revision.";
const FIRST_TAKES_ALL =
  "spec.revision.traffic is kept and acts from the second revision on: the first one takes everything.";
const NOT_BESIDE_ITSELF =
  "spec.revision.canary is kept and has no effect: it names the active revision, which takes everything.";
const NEXT_ONE = "spec.revision.traffic is kept and acts with the next revision: this change makes none.";

/**
 * Refuses what is not kept. True when the latest revision is the active one by name: the next deployment then takes
 * over from it, as it does when none is named.
 */
export async function followsLatest(
  { spec }: Input,
  { workspace, uid }: Resource,
  { store }: Platform,
): Promise<boolean> {
  const choice = choiceOf({ spec });
  if (choice.active === undefined && choice.canary === undefined) return false;
  const kept = (await store.resources.revisionsOf(workspace, uid)).map(({ id }) => id);
  for (const key of ["active", "canary"] as const) {
    const id = choice[key];
    if (id !== undefined && id !== "" && !kept.includes(id))
      throw invalidField(`spec.revision.${key}`, `there is no revision '${id}'; kept are ${kept.join(", ")}`);
  }
  return choice.active === kept[0];
}

/** Two live revisions need a copy each, and a volume can be mounted by only one copy. */
export function refuseSharedVolume({ spec }: Input, { spec: before }: Resource): void {
  const volumes = ((spec.volumes ?? []) as { type?: string }[]).filter(({ type }) => type !== "ephemeral");
  if (volumes.length === 0) return;
  const { canary, canaryPercent = 0, traffic = ALL_PERCENT } = choiceOf({ spec });
  const member = canary && canaryPercent > 0 ? "canary" : traffic > 0 && traffic < ALL_PERCENT ? "traffic" : null;
  if (member === null || canonicalJson([spec.revision]) === canonicalJson([before.revision])) return;
  throw invalidField(
    `spec.revision.${member}`,
    "a workload with a volume runs one copy at a time, so that no second revision can take a share",
  );
}

/** A change of `spec.revision` alone does not make a new revision. */
export function isNewRevision(
  { spec: { revision: _wanted, ...next } }: Input,
  { spec: { revision: _had, ...before } }: Resource,
  secrets: Secrets,
  stored: Secrets,
): boolean {
  return canonicalJson([next, secrets]) !== canonicalJson([before, stored]);
}

/** What was found out about the revisions of a resource before it is replaced. */
export interface Standing {
  follows: boolean;
  /** What a deployment that says nothing of the traffic leaves as it is. */
  choice: RevisionChoice | null;
  latest: string | undefined;
}

/** Settles `spec.revision` of a replacement; returns a sentence for each member that does nothing. */
export function settleChoice(draft: Input, current: Resource, isNew: boolean, standing: Standing): string[] {
  const choice = choiceOf(draft);
  const had = choiceOf(current);
  if (isNew && choice.traffic !== undefined) {
    const base = { ...choice, active: choice.active || had.active || "" };
    draft.spec.revision = sharedChoice(base.active === "" ? withoutActive(base) : base, current, choice.traffic);
    return [];
  }
  if (isNew && standing.follows) takeOver(draft);
  if (isNew && standing.choice) draft.spec.revision = { ...standing.choice, ...choice };
  if (isNew || canonicalJson([choice]) === canonicalJson([had])) return [];
  const idle: string[] = [];
  if (choice.traffic !== undefined && choice.traffic !== had.traffic && !shareLatest(draft, had, standing.latest))
    idle.push(NEXT_ONE);
  const { active, canary, canaryPercent = 0 } = choiceOf(draft);
  if (!canary && canaryPercent > 0) idle.push(NO_CANARY);
  if (canary && canary === (active || standing.latest) && canaryPercent > 0) idle.push(NOT_BESIDE_ITSELF);
  return idle;
}

const withoutActive = ({ active: _active, ...rest }: RevisionChoice): RevisionChoice => rest;

/** Another share for the newest revision while it is the canary: false when it is not. */
function shareLatest({ spec }: Input, had: RevisionChoice, latest: string | undefined): boolean {
  const choice = choiceOf({ spec });
  const { canary, canaryPercent, traffic = ALL_PERCENT } = choice;
  if (!canary || canary !== latest) return false;
  if (canaryPercent !== had.canaryPercent && canaryPercent !== traffic)
    throw invalidField(
      "spec.revision.traffic",
      `is ${traffic}, and canaryPercent, which says the same, ${canaryPercent}`,
    );
  if (traffic < ALL_PERCENT) spec.revision = { ...choice, canaryPercent: traffic };
  else takeOver({ metadata: {}, spec });
  return true;
}

/** The newest revision gets the traffic of the one before it, which ends a canary of an older one. */
function takeOver({ spec }: Input): void {
  const choice = spec.revision as RevisionChoice | undefined;
  for (const key of ["active", "canary", "canaryPercent"] as const) delete choice?.[key];
}

/**
 * What a deployment that says nothing of the traffic leaves as it is: somebody has put it on a revision that is not the
 * latest. Null when the deployment takes over.
 */
export async function standingOf(input: Input, current: Resource, deps: Platform): Promise<Standing> {
  const follows = await followsLatest(input, current, deps);
  const { active, canary } = choiceOf(input);
  const had = choiceOf(current);
  const [latest] = await deps.store.resources.revisionsOf(current.workspace, current.uid);
  const isSilent = active === undefined && canary === undefined;
  const { traffic: _traffic, ...kept } = had;
  const choice = isSilent && had.active && had.active !== latest?.id ? kept : null;
  return { follows, choice, latest: latest?.id };
}

/** The traffic share of a revision. */
export function trafficOf(resource: Resource, latest: string | undefined) {
  const { state, status } = resource;
  const choice = choiceOf(resource);
  // The active revision: a failed or unfinished deployment has no traffic yet.
  const { activeRevision } = state as { activeRevision?: string };
  const active = activeRevision ?? (choice.active || latest);
  const wanted = choice.canary && choice.canary !== active ? (choice.canaryPercent ?? 0) : 0;
  const toCanary = activeRevision === undefined ? wanted : (liveCanary(resource)?.percent ?? 0);
  const { revisions = {} } = state as { revisions?: Record<string, { failed?: string }> };
  const answering = status === "FAILED" && activeRevision !== undefined ? "DEPLOYED" : status;
  const statusOf = (id: string): string | null =>
    revisions[id]?.failed !== undefined ? "FAILED" : id === active ? answering : null;
  return (id: string) => ({
    active: id === active,
    canary: id === choice.canary,
    previousActive: id === state.previousRevision,
    trafficPercent: id === active ? ALL_PERCENT - toCanary : id === choice.canary ? toCanary : 0,
    ...(statusOf(id) === null ? {} : { status: statusOf(id) }),
  });
}
