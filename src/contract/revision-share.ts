/**
 * Which revisions of a workload get its requests or executions, and which share. `spec.revision` is the wish; the
 * reconcile loop writes into the state which revision is active and which canary can run.
 */
export interface RevisionChoice {
  active?: string;
  canary?: string;
  /** Share of the canary in percent, 0 to 100. */
  canaryPercent?: number;
  stickySessionTtl?: number;
  /** Share of every new revision in percent, 0 to 100. Default: 100, or 0 when an older revision is set as active. */
  traffic?: number;
}

interface Chosen {
  spec: Record<string, unknown>;
  state: Record<string, unknown>;
}

export const ALL_PERCENT = 100;

export const choiceOf = ({ spec }: Pick<Chosen, "spec">): RevisionChoice => (spec.revision ?? {}) as RevisionChoice;

/** The canary and its share; null until the reconcile loop has found that the canary can run. */
export function liveCanary(resource: Chosen): { revision: string; percent: number } | null {
  const { canary, canaryPercent: percent = 0 } = choiceOf(resource);
  const { activeRevision, canaryRevision } = resource.state;
  if (!canary || percent <= 0 || canary === activeRevision || canary !== canaryRevision) return null;
  return { revision: canary, percent };
}

/** The choice that gives the next revision `percent` of the traffic, as a canary beside the active one. */
export function sharedChoice(
  { active, canary: _canary, canaryPercent: _percent, ...rest }: RevisionChoice,
  { state, generation }: Pick<Chosen, "state"> & { generation: number },
  percent: number,
): RevisionChoice {
  const answers = active || (state.activeRevision as string | undefined);
  if (percent >= ALL_PERCENT || answers === undefined) return rest;
  return { ...rest, active: answers, canary: String(generation + 1), canaryPercent: percent };
}
