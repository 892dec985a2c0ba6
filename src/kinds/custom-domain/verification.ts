/**
 * A domain is verified when its TXT record proves the owner and its address records point to this server. A domain is
 * verified for one workspace at a time; another workspace can take it over once the former owner's TXT record is gone.
 */
import { createHmac } from "node:crypto";
import { isIP } from "node:net";
import { notFound, PlatformError } from "../../contract/errors.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform, Settings } from "../port.ts";
import { type Dns, DnsUnreachable } from "./dns.ts";
import { takeBackHosts } from "./hosts-below.ts";
import { VERIFIED_POOL } from "./usable.ts";

const TOKEN_LENGTH = 32;

/** The host that domains point to; null where the server has no name that a CNAME record could hold. */
export function edgeHost({ domain, publicUrl }: Pick<Settings, "domain" | "publicUrl">): string | null {
  const host = domain ?? (URL.canParse(publicUrl) ? new URL(publicUrl).hostname : "");
  return host === "" || host === "localhost" || isIP(host.replace(/^\[|\]$/g, "")) !== 0 ? null : host.toLowerCase();
}

/** The records that the owner has to publish. */
export function recordsFor(name: string, workspaceId: string, deps: Pick<Platform, "settings" | "keyFor">) {
  const { settings } = deps;
  const token = createHmac("sha256", deps.keyFor("custom-domains")).update(`${workspaceId}\n${name}`).digest("hex");
  const target = edgeHost(settings);
  return {
    txtRecords: {
      [`_${settings.brand}-verification.${name}`]: `${settings.brand}-verify=${token.slice(0, TOKEN_LENGTH)}`,
    },
    ...(target ? { cnameRecords: target } : {}),
  };
}

type Verdict = { status: "verified" } | { status: "failed"; reason: string } | { status: "unknown"; reason: string };

export async function lookUp(domain: Resource, dns: Dns): Promise<Verdict> {
  try {
    const missing = (await missingTxt(domain, dns)) ?? (await missingCname(domain, dns));
    return missing ? { status: "failed", reason: missing } : { status: "verified" };
  } catch (error) {
    if (!(error instanceof DnsUnreachable)) throw error;
    return { status: "unknown", reason: `${error.message}. Try again later.` };
  }
}

async function missingTxt({ spec }: Resource, dns: Dns): Promise<string | null> {
  for (const [name, value] of Object.entries(spec.txtRecords ?? {})) {
    const found = await dns.txt(name);
    if (!found.includes(value))
      return found.length === 0
        ? `There is no TXT record at ${name}; publish '${value}' there.`
        : `The TXT record at ${name} is another one; publish '${value}' there.`;
  }
  return null;
}

/** DNS providers that allow no CNAME at the top of a domain answer with the target's addresses instead. */
async function missingCname({ name, spec }: Resource, dns: Dns): Promise<string | null> {
  if (typeof spec.cnameRecords !== "string") return null;
  const target = spec.cnameRecords;
  const previews = spec.domainType !== "applications";
  // A wildcard record answers for any name below the domain, so one made-up name is enough to test it.
  const asked = previews ? `domain-check.${name}` : name;
  const found = await dns.cname(asked);
  if (found.some((host) => host.toLowerCase().replace(/\.$/, "") === target)) return null;
  const [here, there] = await Promise.all([dns.addresses(asked), dns.addresses(target)]);
  if (here.some((address) => there.includes(address))) return null;
  return `${previews ? `*.${name}` : name} does not point here; publish a CNAME record to ${target}.`;
}

/** The actor of checks that nobody asked for. */
export const PLATFORM = "platform";

export type VerifyDeps = Pick<Platform, "store" | "clock">;

/**
 * Looks up the DNS records and stores the result. Workspaces that may no longer serve hosts below a domain lose those
 * hosts: former owners, and owners of a domain above this one.
 */
export async function verify(domain: Resource, actor: string, dns: Dns, deps: VerifyDeps): Promise<Resource> {
  const verdict = await lookUp(domain, dns);
  const written = await write(domain, verdict, actor, deps);
  if (written) {
    if (verdict.status === "verified") await takeBackHosts(domain, deps);
    return written;
  }
  const holder = await deps.store.claims.holderOf(VERIFIED_POOL, domain.name);
  const former = holder && (await deps.store.resources.getAcrossWorkspaces(holder.uid));
  if (former) {
    const theirs = await lookUp(former, dns);
    if (theirs.status === "failed") await write(former, theirs, PLATFORM, deps);
  }
  const taken = await write(domain, verdict, actor, deps);
  if (taken) {
    await takeBackHosts(domain, deps);
    return taken;
  }
  throw new PlatformError("conflict", `${domain.name} is verified for another workspace, whose records are in place.`);
}

/** Returns null when the domain is verified but held by another workspace. */
async function write(domain: Resource, verdict: Verdict, actor: string, deps: VerifyDeps): Promise<Resource | null> {
  const { store, clock } = deps;
  return store.write(async (tx) => {
    const current = await store.resources.modify(tx, domain.workspace, domain.uid, () => null);
    if (!current) throw notFound(`customdomain '${domain.name}'`);
    if (verdict.status === "failed") await store.claims.release(tx, current.uid, VERIFIED_POOL);
    if (verdict.status === "verified" && !(await store.claims.take(tx, current, VERIFIED_POOL, current.name)))
      return null;
    const { verificationError: _old, ...spec } = current.spec;
    const next =
      verdict.status === "verified"
        ? { ...spec, status: "verified", lastVerifiedAt: toIso(clock.now()) }
        : {
            ...spec,
            // A DNS server that does not respond says nothing about the domain, so the status stays.
            status: verdict.status === "failed" ? "failed" : spec.status,
            verificationError: verdict.reason,
          };
    const unchanged = actor === PLATFORM && current.spec.status === next.status;
    if (unchanged && verdict.status !== "verified") return current;
    const message = verdict.status === "verified" ? `Verified at the request of ${actor}.` : verdict.reason;
    return store.resources.modify(tx, domain.workspace, domain.uid, () => ({
      spec: next,
      actor,
      ...(unchanged ? {} : { event: { type: verdict.status, message } }),
    }));
  });
}
