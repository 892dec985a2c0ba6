/** A job is deployed like any workload, but no copy runs until a task starts. */
import { restoreSecrets } from "../../contract/secret-fields.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Revision } from "../../store/resources/revision.ts";
import { eventTeller, pullingEvent, startImage } from "../image/pull.ts";
import type { ReconcileContext, Reconciler } from "../port.ts";
import { type DeployObserved, type DeployStep, planDeploy } from "../workload/deploy-plan.ts";
import { deployReconciler } from "../workload/deploy-reconcile.ts";
import { runtimeOf } from "../workload/deploy-state.ts";
import type { Job } from "./kind.ts";
import { job as jobKind } from "./kind.ts";
import { revisionsOf } from "./runnable.ts";

export const jobReconciler: Reconciler<DeployObserved, DeployStep, Job> = {
  async observe(job, context) {
    return { ...(await deployReconciler.observe(job, context)), onDemand: true };
  },
  plan: planDeploy,
  async act(step, job, context) {
    const { store, settings } = context.deps;
    if (step.do === "retire") await store.executions.cancelAllOf(job.uid, settings.executionsKeptMs);
    if (step.do === "adopt" || step.do === "admit") {
      const revision = (await revisionsOf(job, context.deps)).find(({ id }) => id === step.revision);
      if (revision) await fetchImage(job, revision, context);
    }
    await deployReconciler.act(step, job, context);
  },
};

/** A job is deployed once its image is on this machine, so that tasks start at once. */
async function fetchImage(
  job: Resource,
  revision: Revision,
  { deps, record, signal }: ReconcileContext,
): Promise<void> {
  const spec = structuredClone(revision.spec);
  restoreSecrets({ spec }, jobKind.secrets, deps.store.resources.secretsOf(revision));
  const { image, imagePullPolicy: policy, dockerConfig } = runtimeOf(job.kind, spec);
  if (!image) return;
  const { tell, told } = eventTeller((message) => record(() => pullingEvent(message)));
  const { source } = await startImage(image, job, deps, { policy, dockerConfig, signal, tell }).finally(told);
  if (source !== undefined) await record(() => ({ event: { type: "image", message: `Its tasks run ${source}.` } }));
}
