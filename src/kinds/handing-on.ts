/** A caller may not grant more than the caller has: no later expiry and no higher role. */
import type { Caller } from "../contract/caller.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Role } from "../contract/operation.ts";
import { toIso } from "../lib/time/clock.ts";

/** Expiry of what the caller creates: as asked, by default that of the caller's own credentials; null = never. */
export function endWithin(field: string, askedMs: number | null, { endsAt }: Caller): number | null {
  if (endsAt === undefined) return askedMs;
  if (askedMs === null) return endsAt;
  if (askedMs <= endsAt) return askedMs;
  throw new PlatformError(
    "forbidden",
    `${field}: the credentials of this request end at ${toIso(endsAt)}, and make nothing that lives longer.`,
  );
}

/** Refuses callers whose credentials expire: things such as a password have no expiry. */
export function requireEndless({ endsAt }: Caller, what: string): void {
  if (endsAt === undefined) return;
  throw new PlatformError(
    "forbidden",
    `The credentials of this request end at ${toIso(endsAt)}. ${what} has no end, so credentials without an end are needed.`,
  );
}

/** The role admin includes every scope, so only a caller who has every scope may give it. */
export function requireRoleToGive(field: string, role: Role | undefined, { scopes }: Caller): void {
  if (role !== "admin" || scopes === null || scopes.has("admin")) return;
  throw new PlatformError("forbidden", `${field}: credentials with all scopes are needed to make somebody an admin.`);
}
