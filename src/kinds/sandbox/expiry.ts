/** When a sandbox expires, and which member of its spec causes that. */
import { parseDurationMs } from "../../lib/time/duration.ts";
import { checkedDurationMs, checkedFutureMs } from "../lifetime.ts";
import type { Input, PrepareContext } from "../port.ts";
import type { Sandbox } from "./kind.ts";

export interface Expiry {
  atMs: number;
  /** The member of the spec that sets this expiry, quoted in the event. */
  clock: string;
}

/** The earliest expiry; null = the sandbox stays until it is deleted. */
export function expiryOf({ spec, createdAt, state }: Pick<Sandbox, "spec" | "createdAt" | "state">): Expiry | null {
  const { runtime, lifecycle } = spec;
  // The idle period restarts when the sandbox falls asleep or wakes, not with each request in between.
  const idleSince = state.idleSince ?? createdAt;
  const ends = [
    endAfter("spec.runtime.ttl", createdAt, runtime?.ttl),
    endAt("spec.runtime.expires", runtime?.expires),
    ...(lifecycle?.expirationPolicies ?? []).map(({ type, value }, index) => {
      const clock = `spec.lifecycle.expirationPolicies[${index}] (${type} ${value})`;
      return type === "date"
        ? endAt(clock, value)
        : endAfter(clock, type === "ttl-idle" ? idleSince : createdAt, value);
    }),
  ];
  return ends.reduce((first, end) => (end && (!first || end.atMs < first.atMs) ? end : first), null);
}

const endAfter = (clock: string, startMs: number, duration: string | undefined): Expiry | null => {
  const ms = duration === undefined ? null : parseDurationMs(duration);
  return ms === null ? null : { atMs: startMs + ms, clock };
};

const endAt = (clock: string, date: string | undefined): Expiry | null => {
  const atMs = date === undefined ? Number.NaN : Date.parse(date);
  return Number.isNaN(atMs) ? null : { atMs, clock };
};

/** An empty duration or date means no expiry, like an absent one. */
export function prepareExpiry({ spec }: Input<Sandbox>, { current, deps }: PrepareContext<Sandbox>): void {
  const { runtime, lifecycle } = spec;
  const stored = current?.spec;
  const now = deps.clock.now();
  if (runtime?.ttl === "") delete runtime.ttl;
  if (runtime?.expires === "") delete runtime.expires;
  if (runtime?.ttl !== undefined) checkedDurationMs("spec.runtime.ttl", runtime.ttl);
  if (runtime?.expires !== undefined)
    checkedFutureMs("spec.runtime.expires", runtime.expires, now, stored?.runtime?.expires);
  if (lifecycle?.terminatedRetention !== undefined)
    checkedDurationMs("spec.lifecycle.terminatedRetention", lifecycle.terminatedRetention);
  if (lifecycle?.hibernateAfter !== undefined)
    checkedDurationMs("spec.lifecycle.hibernateAfter", lifecycle.hibernateAfter);
  for (const [index, policy] of (lifecycle?.expirationPolicies ?? []).entries()) {
    const path = `spec.lifecycle.expirationPolicies[${index}].value`;
    if (policy.type === "date")
      checkedFutureMs(path, policy.value, now, stored?.lifecycle?.expirationPolicies?.[index]?.value);
    else checkedDurationMs(path, policy.value);
    policy.action ??= "delete";
  }
}
