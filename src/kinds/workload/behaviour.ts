/** Behaviour that all workload kinds share. */
import { invalidField } from "../../contract/errors.ts";
import type { Status } from "../../contract/fields.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Behaviour, Input, Outlook, PrepareContext } from "../port.ts";
import { chosenRegion } from "../region.ts";
import { deployReconciler } from "./deploy-reconcile.ts";
import { preparedEnvs } from "./envs.ts";
import { settledMemoryMb } from "./memory.ts";
import { prepareNetwork } from "./network.ts";
import { MEMORY_DEFAULT_MB, type WorkloadSpec } from "./spec.ts";
import { prepareTriggers } from "./triggers.ts";
import { codeUploads } from "./uploads.ts";

const GENERATION_DEFAULT = "mk3";

type Json = Record<string, unknown>;

/** Defaults and rules of `enabled`, `region`, `runtime` and `triggers`. */
export function prepareWorkload(
  input: Input<Resource<WorkloadSpec>>,
  kind: string,
  context: PrepareContext<Resource<WorkloadSpec>>,
  memoryMb = MEMORY_DEFAULT_MB,
): void {
  const { spec } = input;
  spec.enabled ??= true;
  settleRegion(input, context);
  prepareNetwork(input);
  const runtime = { ...spec.runtime };
  runtime.generation ??= GENERATION_DEFAULT;
  const had = context.current?.spec.runtime?.memory;
  const memory = { current: had, defaultMb: memoryMb, settings: context.deps.settings };
  runtime.memory = settledMemoryMb("spec.runtime.memory", runtime.memory, memory);
  if (runtime.envs) {
    runtime.envs = preparedEnvs(runtime.envs, "spec.runtime.envs", context.current?.spec.runtime?.envs);
  }
  const { minScale, maxScale } = runtime;
  if (minScale !== undefined && maxScale !== undefined && minScale > maxScale)
    throw invalidField("spec.runtime.minScale", `must not be above maxScale, which is ${maxScale}`);
  spec.runtime = runtime;
  prepareTriggers(input, kind, context);
}

type Regional = Pick<WorkloadSpec, "region">;

export function settleRegion(
  { spec }: Input<Resource<Regional>>,
  { current, deps }: PrepareContext<Resource<Regional>>,
): void {
  spec.region = chosenRegion("spec.region", spec.region, current?.spec.region, deps.settings);
}

/** Status after a write that the reconciler handles at once. */
export const deploying = (spec: Json): Outlook => enabledOr(spec, { status: "DEPLOYING" });

/** What agents, functions and applications share: code that runs and is reached through the gateway. */
export const deployed = {
  outlook: deploying,
  reconciled: true,
  uploads: codeUploads,
  awaitDelete: true,
  reconciler: deployReconciler,
} satisfies Partial<Behaviour>;

/** Status of workloads that the platform answers itself: no copy has to be started. */
export const servedAtOnce = (spec: Json): Outlook => enabledOr(spec, { status: "DEPLOYED" });

const enabledOr = (spec: Json, enabled: Outlook & { status: Status }): Outlook =>
  spec.enabled === false
    ? { status: "DEACTIVATED", event: { type: "deactivated", message: "Switched off: spec.enabled is false." } }
    : enabled;
