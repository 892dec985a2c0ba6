/** Triggers of a workload: ways to start it besides a call to its own address. */
import { WORKLOADS, type WorkloadKind } from "./addresses.ts";

/** Kinds with triggers; a `triggers` member of other kinds has no meaning. */
const TRIGGERED: ReadonlySet<string> = new Set(["agent", "function", "job"]);

export type TriggerType = "http" | "http-async" | "cron";

export interface Trigger {
  id: string;
  type: TriggerType;
  enabled?: boolean | undefined;
  configuration?: TriggerConfiguration | undefined;
}

export interface TriggerConfiguration {
  authenticationType?: "public" | "private" | undefined;
  callbackUrl?: string | undefined;
  /** Stored with the secrets of the resource; see callbackSecretKey. */
  callbackSecret?: string | undefined;
  /** HTTP trigger: its address below the workspace. Cron trigger: the path of the workload to call. */
  path?: string | undefined;
  retry?: number | undefined;
  schedule?: string | undefined;
  timezone?: string | undefined;
  tasks?: Record<string, unknown>[] | undefined;
  timeout?: number | undefined;
}

/** Most segments of a trigger's path; the gateway compares as many segments of a request. */
export const TRIGGER_SEGMENTS_MAX = 16;

export const hasTriggers = (kind: string): boolean => TRIGGERED.has(kind);

type Owner = { kind: string; spec: Record<string, unknown> };

/** The triggers of a stored resource; ids and types were set when it was written. */
export const triggersOf = ({ kind, spec }: Owner): readonly Trigger[] =>
  hasTriggers(kind) ? ((spec.triggers as Trigger[] | undefined) ?? []) : [];

export const triggerNamed = (owner: Owner, id: string): Trigger | undefined =>
  triggersOf(owner).find((trigger) => trigger.id === id);

export const isOn = (trigger: Trigger): boolean => trigger.enabled !== false;

/** The key of a trigger's signing secret among the secrets of its resource. */
export const callbackSecretKey = (id: string): string => `/spec/triggers/${id}/configuration/callbackSecret`;

/** The trigger's path without slashes at its ends; "" = no address of its own. */
export const triggerPath = ({ configuration }: Pick<Trigger, "configuration">): string =>
  configuration?.path?.replace(/^\/+|\/+$/g, "") ?? "";

/** The address of a workload below its workspace; triggers may be below it. */
export const ownPath = (kind: string, name: string): string => `${WORKLOADS[kind as WorkloadKind].plural}/${name}`;

/** The rest of a path after `start`, at a segment boundary; null when the path does not begin with `start`. */
export function behind(path: string, start: string): string | null {
  if (!path.startsWith(start)) return null;
  const next = path.charCodeAt(start.length);
  return Number.isNaN(next) || next === SLASH || next === QUESTION ? path.slice(start.length) : null;
}

const SLASH = 47;
const QUESTION = 63;
