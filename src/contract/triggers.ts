/** Triggers of a workload: what starts it beside a call to its own address. */
import { WORKLOADS, type WorkloadKind } from "./addresses.ts";

/** Kinds that can have them; other kinds may carry a member of that name which means nothing here. */
const TRIGGERED: ReadonlySet<string> = new Set(["agent", "function", "job"]);

export type TriggerType = "http" | "http-async" | "cron";

export interface Trigger {
  id: string;
  type: TriggerType;
  enabled?: boolean;
  configuration?: TriggerConfiguration;
}

export interface TriggerConfiguration {
  authenticationType?: "public" | "private";
  callbackUrl?: string;
  /** Kept with the secrets of the resource; see callbackSecretKey. */
  callbackSecret?: string;
  /** Of an HTTP trigger: its address below the workspace. Of a cron trigger: the workload's path that is asked. */
  path?: string;
  retry?: number;
  schedule?: string;
  timezone?: string;
  tasks?: Record<string, unknown>[];
  timeout?: number;
}

/** Of a trigger's path; a request's address is compared with as many of its own. */
export const TRIGGER_SEGMENTS_MAX = 16;

export const hasTriggers = (kind: string): boolean => TRIGGERED.has(kind);

type Owner = { kind: string; spec: Record<string, unknown> };

/** The triggers of a stored resource: ids and types were settled when it was written. */
export const triggersOf = ({ kind, spec }: Owner): readonly Trigger[] =>
  hasTriggers(kind) ? ((spec.triggers as Trigger[] | undefined) ?? []) : [];

export const triggerNamed = (owner: Owner, id: string): Trigger | undefined =>
  triggersOf(owner).find((trigger) => trigger.id === id);

export const isOn = (trigger: Trigger): boolean => trigger.enabled !== false;

/** Where a trigger's signing secret is among the secrets of its resource. */
export const callbackSecretKey = (id: string): string => `/spec/triggers/${id}/configuration/callbackSecret`;

/** Without slashes at its ends; "" = no address of its own. */
export const triggerPath = ({ configuration }: Pick<Trigger, "configuration">): string =>
  configuration?.path?.replace(/^\/+|\/+$/g, "") ?? "";

/** The address of a workload below its workspace, which triggers may lie below too. */
export const ownPath = (kind: string, name: string): string => `${WORKLOADS[kind as WorkloadKind].plural}/${name}`;

/** What a path has behind `start`, on the border of a segment; null when it does not begin with it. */
export function behind(path: string, start: string): string | null {
  if (!path.startsWith(start)) return null;
  const next = path.charCodeAt(start.length);
  return Number.isNaN(next) || next === SLASH || next === QUESTION ? path.slice(start.length) : null;
}

const SLASH = 47;
const QUESTION = 63;
