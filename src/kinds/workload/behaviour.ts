/** Behaviour that all workload kinds share. */
import { invalidField } from "../../contract/errors.ts";
import type { Status } from "../../contract/fields.ts";
import type { Behaviour, Input, Outlook, PrepareContext } from "../port.ts";
import { chosenRegion } from "../region.ts";
import { deployReconciler } from "./deploy-reconcile.ts";
import { type Env, preparedEnvs } from "./envs.ts";
import { settledMemoryMb } from "./memory.ts";
import { prepareNetwork } from "./network.ts";
import { MEMORY_DEFAULT_MB } from "./spec.ts";
import { prepareTriggers } from "./triggers.ts";
import { codeUploads } from "./uploads.ts";

const GENERATION_DEFAULT = "mk3";

type Json = Record<string, unknown>;

/** Defaults and rules of `enabled`, `region`, `runtime` and `triggers`. */
export function prepareWorkload(
  input: Input,
  kind: string,
  context: PrepareContext,
  memoryMb = MEMORY_DEFAULT_MB,
): void {
  const { spec } = input;
  spec.enabled ??= true;
  settleRegion(input, context);
  prepareNetwork(input);
  const runtime = { ...(spec.runtime as Json | undefined) };
  runtime.generation ??= GENERATION_DEFAULT;
  const had = (context.current?.spec.runtime as Json | undefined)?.memory;
  const memory = { current: had, defaultMb: memoryMb, settings: context.deps.settings };
  runtime.memory = settledMemoryMb("spec.runtime.memory", runtime.memory, memory);
  if (runtime.envs) {
    const stored = (context.current?.spec.runtime as Json | undefined)?.envs;
    runtime.envs = preparedEnvs(runtime.envs as Env[], "spec.runtime.envs", stored as Env[] | undefined);
  }
  const { minScale, maxScale } = runtime as { minScale?: number; maxScale?: number };
  if (minScale !== undefined && maxScale !== undefined && minScale > maxScale)
    throw invalidField("spec.runtime.minScale", `must not be above maxScale, which is ${maxScale}`);
  spec.runtime = runtime;
  prepareTriggers(input, kind, context);
}

export function settleRegion({ spec }: Input, { current, deps }: PrepareContext): void {
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
