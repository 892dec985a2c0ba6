/** `spec.urls`: host names of custom domains at which a workload answers, beside its own address. */
import type { Link } from "../../contract/references.ts";
import { hostClaim, requireVerifiedDomain } from "../host.ts";
import { type Input, type PrepareContext, workspaceOf } from "../port.ts";
import { type WorkloadUrl, workloadSpec } from "./spec.ts";

const urlsOf = ({ spec }: Pick<Input, "spec">): WorkloadUrl[] => workloadSpec(spec).urls ?? [];

const hostOf = ({ domain, subdomain }: WorkloadUrl): string =>
  (subdomain ? `${subdomain}.${domain}` : domain).toLowerCase();

export async function prepareUrls(input: Input, { call, deps }: PrepareContext): Promise<void> {
  for (const [index, url] of urlsOf(input).entries())
    await requireVerifiedDomain(`spec.urls[${index}]`, hostOf(url), workspaceOf(call).name, deps);
}

export const urlClaims = (input: Pick<Input, "spec">): Link[] =>
  urlsOf(input).map((url, index) => hostClaim(`spec.urls[${index}]`, hostOf(url)));
