/** Restricts a sandbox to the roles that an admin chose; contract/kept-access.ts explains why. */
import { PlatformError } from "../../contract/errors.ts";
import { keptOf, mayEnter } from "../../contract/kept-access.ts";
import type { Role } from "../../contract/operation.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Call, Input, PrepareContext } from "../port.ts";
import type { Sandbox } from "./kind.ts";

export function requireEntry(resource: Resource, { role }: Pick<Call, "role">): void {
  if (mayEnter(keptOf(resource), role)) return;
  throw new PlatformError(
    "forbidden",
    `sandbox '${resource.name}' is kept to some roles (spec.access), and yours is not one of them. Ask a workspace admin.`,
  );
}

/** Only an admin chooses the roles. The platform records since when they apply. */
export function prepareAccess({ spec }: Input<Sandbox>, { call, current, deps }: PrepareContext<Sandbox>): void {
  const wanted = rolesOf(spec);
  if (canonicalJson(wanted) === canonicalJson(rolesOf(current?.spec ?? {}))) {
    if (current?.spec.access === undefined) delete spec.access;
    else spec.access = current.spec.access;
    return;
  }
  if (call.role !== "admin")
    throw new PlatformError("forbidden", "spec.access: only an admin keeps a sandbox to roles.");
  if (wanted === null) delete spec.access;
  else spec.access = { roles: wanted, since: toIso(deps.clock.now()) };
}

function rolesOf({ access }: Sandbox["spec"]): Role[] | null {
  const roles = access?.roles;
  return roles === undefined ? null : [...new Set(roles)].sort();
}
