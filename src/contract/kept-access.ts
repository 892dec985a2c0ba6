/**
 * A sandbox that an admin restricts to named roles: `spec.access.roles`. Running code in a sandbox gives access to its
 * variables and files, so all ways in are closed to other roles: its address, previews, forks, schedules, logs.
 */
import type { Role } from "./operation.ts";

export interface Kept {
  roles: readonly Role[];
  /** Start of the restriction. Older previews and tokens may belong to anybody and are refused. */
  sinceMs: number;
}

/** Returns null for a resource that every member of the workspace may enter. */
export function keptOf({ kind, spec }: { kind: string; spec: Record<string, unknown> }): Kept | null {
  if (kind !== "sandbox") return null;
  const { roles, since } = (spec.access ?? {}) as { roles?: Role[]; since?: string };
  if (!Array.isArray(roles)) return null;
  return { roles, sinceMs: typeof since === "string" ? Date.parse(since) : 0 };
}

/** Admins may always enter, because they could change the roles. */
export const mayEnter = (kept: Kept | null, role: Role | null): boolean =>
  kept === null || role === "admin" || (role !== null && kept.roles.includes(role));
