/** The share of the traffic that the revision of a deployment gets. */
import { ALL_PERCENT, type RevisionChoice } from "../../contract/revision-share.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { isObject, memberAt } from "../json-path.ts";
import type { Noun } from "../nouns.ts";
import type { Project } from "../project.ts";

/** `--traffic` wins over the deploy file. */
export function giveShare(noun: Noun, { spec }: Project, given: string | undefined): void {
  const named = given === undefined ? "revision in the deploy file" : "--traffic";
  if (given === undefined && spec.revision === undefined) return;
  if (!noun.kind?.revisions) throw new UsageError(`${named} is for kinds with revisions: a ${noun.name} has none.`);
  if (given === undefined) return;
  const traffic = Number(given);
  if (!/^\d+$/.test(given) || traffic > ALL_PERCENT)
    throw new UsageError(`--traffic ${given} is not a share.`, `a whole number from 0 to ${ALL_PERCENT}`);
  spec.revision = { ...(isObject(spec.revision) ? spec.revision : {}), traffic };
}

/**
 * The share of new revisions and the length of sessions stay as the record has them, unless this deployment names a
 * share or a revision. Which revisions answer meanwhile is the server's to decide.
 */
export function keepShare(noun: Noun, { spec }: Project, before: unknown): void {
  if (!noun.kind?.revisions || spec.revision !== undefined) return;
  const { traffic, stickySessionTtl } = (memberAt(before, "spec.revision") ?? {}) as RevisionChoice;
  if (traffic === undefined && stickySessionTtl === undefined) return;
  spec.revision = {
    ...(traffic === undefined ? {} : { traffic }),
    ...(stickySessionTtl === undefined ? {} : { stickySessionTtl }),
  };
}

/** For kinds without revisions nothing is told. */
export function tellShare(resource: unknown, note: (line: string) => void): void {
  const events = (memberAt(resource, "events") ?? []) as { revision?: string }[];
  const newest = Math.max(0, ...events.map(({ revision }) => Number(revision) || 0));
  if (newest === 0) return;
  const { active, canary, canaryPercent = 0 } = (memberAt(resource, "spec.revision") ?? {}) as RevisionChoice;
  const share = canary === String(newest) ? canaryPercent : 0;
  const beside = `${share} %; revision ${active} is the active one`;
  note(`Revision ${newest} takes ${!active || active === String(newest) ? `${ALL_PERCENT} %` : beside}.`);
}
