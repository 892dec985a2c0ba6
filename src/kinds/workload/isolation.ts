/**
 * The weakest isolation grade that a workload may have: what its own record asks for (`runtime.isolation`), and the
 * isolation policies of its workspace, which hold for every workload there. The stronger one decides.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { chooseGrade } from "../../contract/isolation.ts";
import { type Grade, isAtLeast } from "../../lib/grades.ts";
import type { Driver } from "../../node/driver.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import type { Store } from "../../store/store.ts";
import { appliesTo, policy as policyKind } from "../policy/kind.ts";
import { workloadSpec } from "./spec.ts";

type Owner = Pick<Resource, "kind" | "workspace" | "spec">;
type Records = Pick<Store, "resources">;

/** Isolation policies of one workspace that are read; more would be a mistake. */
const POLICIES_MAX = 1000;

/** Undefined: neither the record nor a policy asks for any. */
export async function leastIsolation(owner: Owner, { resources }: Records): Promise<Grade | undefined> {
  // A build of an image is isolated like what the image is for.
  const kind = owner.kind === "image" ? String(owner.spec.resourceType) : owner.kind;
  const policies = await resources.listNested(owner.workspace, policyKind.name, POLICIES_MAX);
  const asked = policies
    .map((each) => ofKind(policyKind, each))
    .filter(({ spec, deletedAt }) => spec.type === "isolation" && deletedAt === null && appliesTo(spec, kind))
    .flatMap(({ spec }) => spec.isolation ?? []);
  const { isolation } = workloadSpec(owner.spec).runtime ?? {};
  return [...asked, ...(isolation ? [isolation] : [])].reduce<Grade | undefined>(
    (strongest, grade) => (strongest !== undefined && isAtLeast(strongest, grade) ? strongest : grade),
    undefined,
  );
}

/** Refuses a record that this machine could not run. A driver that still opens, or cannot open, refuses nothing here. */
export async function requireIsolation(owner: Owner, records: Records, driver: Pick<Driver, "probe">): Promise<void> {
  if ((await leastIsolation(owner, records)) !== undefined) await offeredGrade(owner, records, driver);
}

/** The grade that the workload would have here; null when that is not known yet. Refuses where it cannot have its own. */
export async function offeredGrade(
  owner: Owner,
  records: Records,
  driver: Pick<Driver, "probe">,
): Promise<Grade | null> {
  const least = await leastIsolation(owner, records);
  const offered = driver.probe().then(
    ({ grade, grades }) => chooseGrade(grades, [grade, least]),
    (): null => null,
  );
  return Promise.race([offered, nextTurn(null)]);
}
