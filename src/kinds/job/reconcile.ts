/** A job is deployed like any workload, but no copy runs until a task starts. */
import { driverImage } from "../image/resolve.ts";
import { defineReconciler } from "../port.ts";
import { type DeployObserved, type DeployStep, planDeploy } from "../workload/deploy-plan.ts";
import { deployReconciler } from "../workload/deploy-reconcile.ts";
import { runtimeOf } from "../workload/deploy-state.ts";
import { revisionsOf } from "./runnable.ts";

export const jobReconciler = defineReconciler<DeployObserved, DeployStep>({
  async observe(job, context) {
    return { ...((await deployReconciler.observe(job, context)) as DeployObserved), onDemand: true };
  },
  plan: planDeploy,
  async act(step, job, context) {
    const { store, settings } = context.deps;
    if (step.do === "retire") await store.executions.cancelAllOf(job.uid, settings.executionsKeptMs);
    if (step.do === "adopt" || step.do === "admit") {
      const revision = (await revisionsOf(job, context.deps)).find(({ id }) => id === step.revision);
      const { image } = runtimeOf(job.kind, revision?.spec ?? {});
      if (image) await driverImage(image, job, context.deps);
    }
    await deployReconciler.act(step, job, context);
  },
});
