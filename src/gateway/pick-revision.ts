/**
 * Which revision answers a request. At most two are live: the active one and a canary that takes a share of the
 * requests. With a sticky time-to-live the choice is kept by a cookie, so that one client sees one revision.
 */
export interface RevisionPlan {
  active: string;
  canary?: string | undefined;
  /** 0 to 100; other values are clamped. */
  canaryPercent?: number | undefined;
  /** 0 or absent: each request is assigned independently. */
  stickyTtlSeconds?: number | undefined;
}

export interface RevisionPick {
  revision: string;
  /** Cookie value that pins the client from now on; null when no cookie has to be set. */
  pin: string | null;
}

/** Longest pin, so that it does not outlive a rollout. */
export const STICKY_TTL_MAX_SECONDS = 7 * 24 * 3600;

/**
 * `random` is in [0, 1). A pin counts until it expires and only while its revision still has a share: setting the
 * canary to 0 percent takes everybody off it at once.
 */
export function pickRevision(plan: RevisionPlan, pinned: string | null, random: number, nowMs: number): RevisionPick {
  const share = plan.canary === undefined ? 0 : Math.min(100, Math.max(0, plan.canaryPercent ?? 0));
  if (plan.canary === undefined || share === 0 || plan.canary === plan.active) {
    return { revision: plan.active, pin: null };
  }
  if (share === 100) return { revision: plan.canary, pin: null };
  const ttl = Math.min(STICKY_TTL_MAX_SECONDS, plan.stickyTtlSeconds ?? 0);
  if (ttl > 0 && pinned !== null) {
    const kept = readPin(pinned, nowMs, ttl);
    if (kept === plan.active || kept === plan.canary) return { revision: kept, pin: null };
  }
  const revision = random * 100 < share ? plan.canary : plan.active;
  return { revision, pin: ttl > 0 ? `${nowMs + ttl * 1000}.${revision}` : null };
}

/** The client can forge the cookie, so a pin never lasts longer than the plan's own time-to-live. */
function readPin(pin: string, nowMs: number, ttlSeconds: number): string | null {
  const dot = pin.indexOf(".");
  const untilMs = Number(pin.slice(0, dot));
  if (dot <= 0 || !(untilMs > nowMs) || untilMs > nowMs + ttlSeconds * 1000) return null;
  return pin.slice(dot + 1);
}
