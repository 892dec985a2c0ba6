/**
 * Which revisions of a workload take its requests or executions, and how many of them. `spec.revision` says what is
 * wanted; the loop writes into the state which revision answers and which canary can run.
 */
export interface RevisionChoice {
  active?: string;
  canary?: string;
  /** Share of the canary, 0 to 100. */
  canaryPercent?: number;
  stickySessionTtl?: number;
  /** Share of every new revision, 0 to 100; absent = all, or nothing where an older revision was made the active one. */
  traffic?: number;
}

interface Chosen {
  spec: Record<string, unknown>;
  state: Record<string, unknown>;
}

export const ALL_PERCENT = 100;

export const choiceOf = ({ spec }: Pick<Chosen, "spec">): RevisionChoice => (spec.revision ?? {}) as RevisionChoice;

/** The canary and its share, once the loop has found that the canary can run. */
export function liveCanary(resource: Chosen): { revision: string; percent: number } | null {
  const { canary, canaryPercent: percent = 0 } = choiceOf(resource);
  const { activeRevision, canaryRevision } = resource.state;
  if (!canary || percent <= 0 || canary === activeRevision || canary !== canaryRevision) return null;
  return { revision: canary, percent };
}

/** The choice that gives a revision which is about to be written its share: as a canary beside the one that answers. */
export function sharedChoice(
  { active, canary: _canary, canaryPercent: _percent, ...rest }: RevisionChoice,
  { state, generation }: Pick<Chosen, "state"> & { generation: number },
  percent: number,
): RevisionChoice {
  const answers = active || (state.activeRevision as string | undefined);
  if (percent >= ALL_PERCENT || answers === undefined) return rest;
  return { ...rest, active: answers, canary: String(generation + 1), canaryPercent: percent };
}
