/** What is done for custom domains from time to time: looking their records up again, and removing left certificates. */
import { PlatformError } from "../../contract/errors.ts";
import { DAY_MS, HOUR_MS } from "../../lib/time/clock.ts";
import type { CertificateRecord } from "../../store/certificates.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { belongsToPlatform, type HostSettings } from "../platform-hosts.ts";
import type { Settings } from "../port.ts";
import { createDns, type Dns } from "./dns.ts";
import { isVerified, mayServe } from "./usable.ts";
import { PLATFORM, type VerifyDeps, verify } from "./verification.ts";

/** Age of a check after which a domain is looked up again. */
const CHECK_AFTER_MS = HOUR_MS;
const PAGE = 100;

/**
 * Looks up the records of domains that were verified once: a domain whose records have gone stops, and a domain whose
 * records are back serves again.
 */
export async function recheckDomains(
  deps: VerifyDeps & { settings: Pick<Settings, "dnsServers"> },
  signal: AbortSignal,
): Promise<void> {
  const dns = createDns(deps.settings.dnsServers);
  for (let after = ""; !signal.aborted; ) {
    const page = await deps.store.resources.listAcrossWorkspaces("customdomain", after, PAGE);
    for (const domain of page) if (isDue(domain, deps.clock.now())) await recheck(domain, dns, deps);
    if (page.length < PAGE) return;
    after = page.at(-1)?.uid ?? "";
  }
}

function isDue({ spec, deletedAt, retired }: Resource, nowMs: number): boolean {
  if (deletedAt !== null || retired || typeof spec.lastVerifiedAt !== "string") return false;
  return spec.status !== "verified" || nowMs - Date.parse(spec.lastVerifiedAt) >= CHECK_AFTER_MS;
}

async function recheck(domain: Resource, dns: Dns, deps: VerifyDeps): Promise<void> {
  try {
    await verify(domain, PLATFORM, dns, deps);
  } catch (error) {
    // The domain is verified for another workspace now, or was deleted meanwhile.
    if (!(error instanceof PlatformError)) throw error;
  }
}

/** Age after its end at which a certificate that the platform no longer asks for is removed. */
const EXPIRED_KEPT_MS = 7 * DAY_MS;

/** Whether a certificate is over that nobody tried to replace: its name is ordered no more, or under a wildcard. */
const isLeft = ({ source, chain, failure, notAfter, revokedAt }: CertificateRecord, nowMs: number): boolean =>
  source === "acme" && chain !== "" && failure === "" && revokedAt === 0 && notAfter + EXPIRED_KEPT_MS < nowMs;

/**
 * Removes certificates of domains that are gone, those for names of another workspace or the platform itself, and those
 * that are over.
 */
export async function sweepCertificates(
  { store, clock, settings }: VerifyDeps & { settings: HostSettings },
  signal: AbortSignal,
): Promise<void> {
  for (const record of await store.certificates.list()) {
    if (signal.aborted) return;
    const { name, domainUid } = record;
    if (isLeft(record, clock.now())) await store.certificates.remove([name]);
    if (domainUid === "") continue;
    const domain = await store.resources.getAcrossWorkspaces(domainUid);
    const host = name.replace(/^\*/, "any");
    const counts = (one: Resource): boolean => isVerified(one) || one.uid === domainUid;
    const stays = domain && domain.deletedAt === null && !domain.retired && !belongsToPlatform(name, settings);
    if (!stays || !(await mayServe(host, domain.workspace, { store }, counts))) await store.certificates.remove([name]);
  }
}
