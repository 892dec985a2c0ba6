/** Custom host names: who may use a host name. Each host name leads to one resource. */
import { invalidField } from "../contract/errors.ts";
import { CLAIMS, type Link } from "../contract/references.ts";
import { mayServe } from "./custom-domain/usable.ts";
import { belongsToPlatform } from "./platform-hosts.ts";
import type { Platform } from "./port.ts";

/** Claims on host names, unique on the whole platform. The gateway serves the resource that holds the claim. */
export const HOST = CLAIMS.host;

export const hostClaim = (field: string, host: string): Link => ({
  field,
  kind: HOST,
  name: host,
  exclusive: true,
  to: "claim",
});

const HOST_NAME = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/;

/** Requires that the host is at or below a verified custom domain that this workspace owns or has borrowed. */
export async function requireVerifiedDomain(
  field: string,
  host: string,
  workspace: string,
  deps: Platform,
): Promise<void> {
  if (!HOST_NAME.test(host)) throw invalidField(field, "must be a host name");
  if (belongsToPlatform(host, deps.settings)) throw invalidField(field, `'${host}' belongs to the platform`);
  if (await mayServe(host, workspace, deps)) return;
  throw invalidField(field, `'${host}' is not below a verified custom domain of this workspace`);
}
