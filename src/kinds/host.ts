/** Host names that users bring: whose they are, and that one leads to one place. */
import { invalidField } from "../contract/errors.ts";
import { CLAIMS, type Link } from "../contract/references.ts";
import { mayServe } from "./custom-domain/usable.ts";
import type { Platform } from "./port.ts";

/** Host names of the whole platform; the holder of one is what the gateway serves there. */
export const HOST = CLAIMS.host;

export const hostClaim = (field: string, host: string): Link => ({
  field,
  kind: HOST,
  name: host,
  exclusive: true,
  to: "claim",
});

const HOST_NAME = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/;

/** The host, or a domain above it, is a custom domain whose ownership has been shown, of this workspace or lent to it. */
export async function requireVerifiedDomain(
  field: string,
  host: string,
  workspace: string,
  deps: Platform,
): Promise<void> {
  if (!HOST_NAME.test(host)) throw invalidField(field, "must be a host name");
  if (await mayServe(host, workspace, deps)) return;
  throw invalidField(field, `'${host}' is not below a verified custom domain of this workspace`);
}
