/** Nobody hands on more than they have: neither for longer, nor a higher role. */
import type { Caller } from "../contract/caller.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Role } from "../contract/operation.ts";
import { toIso } from "../lib/time/clock.ts";

/** The end of what this caller makes: as asked, or else with the caller's own right; null = none. */
export function endWithin(field: string, askedMs: number | null, { endsAt }: Caller): number | null {
  if (endsAt === undefined) return askedMs;
  if (askedMs === null) return endsAt;
  if (askedMs <= endsAt) return askedMs;
  throw new PlatformError(
    "forbidden",
    `${field}: the credentials of this request end at ${toIso(endsAt)}, and make nothing that lives longer.`,
  );
}

/** For what has no end by itself, such as a password. */
export function requireEndless({ endsAt }: Caller, what: string): void {
  if (endsAt === undefined) return;
  throw new PlatformError(
    "forbidden",
    `The credentials of this request end at ${toIso(endsAt)}. ${what} has no end, so credentials without an end are needed.`,
  );
}

/** The role admin brings every scope with it, so only a caller who has every scope gives it to somebody. */
export function requireRoleToGive(field: string, role: Role | undefined, { scopes }: Caller): void {
  if (role !== "admin" || scopes === null || scopes.has("admin")) return;
  throw new PlatformError("forbidden", `${field}: credentials with all scopes are needed to make somebody an admin.`);
}
