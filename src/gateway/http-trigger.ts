/** Additional addresses of workloads, and how they change a request. */

import { behind, isOn, ownPath, triggerPath, triggersOf } from "../contract/triggers.ts";
import type { WorkloadRoute } from "../http/route.ts";
import { queryValue } from "./credentials.ts";
import type { HttpTrigger, Workload } from "./deps.ts";

export function httpTriggersOf(resource: { kind: string; name: string; spec: Record<string, unknown> }): HttpTrigger[] {
  return triggersOf(resource)
    .filter(({ type }) => type !== "cron")
    .map((trigger) => {
      const own = ownPath(resource.kind, resource.name);
      const path = triggerPath(trigger) || own;
      const { authenticationType } = trigger.configuration ?? {};
      return {
        id: trigger.id,
        async: trigger.type === "http-async",
        path: `/${path}`,
        own: behind(path, own),
        on: isOn(trigger),
        public: authenticationType === undefined ? null : authenticationType === "public",
      };
    });
}

export interface Entered<R extends WorkloadRoute> {
  route: R;
  workload: Workload;
  trigger: HttpTrigger | null;
}

/** Splits the path behind the trigger's address; the workload sees the rest. */
export function enter<R extends WorkloadRoute>(route: R, workload: Workload): Entered<R> {
  if (workload.triggers.length === 0) return { route, workload, trigger: null };
  const byPath = route.to === "trigger";
  let trigger: HttpTrigger | null = null;
  let rest = "";
  for (const each of workload.triggers) {
    // The workload's own address is always synchronous, so triggers on it that are off or asynchronous are skipped.
    if (!byPath && (!each.on || (each.async && each.own === ""))) continue;
    const start = byPath ? each.path : each.own;
    const left = start === null ? null : behind(route.path, start);
    if (left === null || (trigger !== null && left.length >= rest.length)) continue;
    trigger = each;
    rest = left;
  }
  if (trigger === null) return { route, workload, trigger };
  return {
    trigger,
    workload: {
      ...workload,
      public: trigger.public ?? workload.public,
      enabled: workload.enabled && trigger.on,
    },
    route: {
      ...route,
      prefix: route.prefix + route.path.slice(0, route.path.length - rest.length),
      path: rest.startsWith("/") ? rest : `/${rest}`,
    },
  };
}

/**
 * The trigger that makes a request asynchronous: the one it came by, or for `?async=true` the agent's asynchronous
 * trigger. False when the request is synchronous, null when the agent has no asynchronous trigger.
 */
export function asyncTriggerOf(workload: Workload, by: HttpTrigger | null, path: string): HttpTrigger | null | false {
  if (by?.async) return by;
  if (workload.kind !== "agent" || queryValue(path, "async") !== "true") return false;
  const all = workload.triggers.filter((trigger) => trigger.async && trigger.on);
  return all.find((trigger) => trigger.own === "") ?? all[0] ?? null;
}
