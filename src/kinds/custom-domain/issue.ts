/**
 * Certificates from an authority (ACME), for names of verified domains and of the platform itself. The names come from
 * the records of the platform and never from a handshake, so that no stranger can cause an order. One server at a time
 * runs this task.
 */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { AcmeClient, AcmeError, type AcmeSettings } from "../../acme/acme-client.ts";
import { PREVIEW_LABEL, S3_LABEL } from "../../contract/addresses.ts";
import { isLoopbackName } from "../../lib/network/site.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, toIso } from "../../lib/time/clock.ts";
import type { CertificateRecord } from "../../store/certificates.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { HOST } from "../host.ts";
import { pagesUrl } from "../pages-url.ts";
import { belongsToPlatform } from "../platform-hosts.ts";
import type { Platform } from "../port.ts";
import { solverFor } from "./challenges.ts";
import { ORDER_WINDOW_MS, PLATFORM, takeTurns } from "./order-turns.ts";
import { isVerified, mayServe } from "./usable.ts";

/** Share of a certificate's life after which the next one is asked for, and how much earlier at random. */
const RENEW_AT = 2 / 3;
const JITTER = 0.05;
/** Waiting times after failures: authorities count failures by name and hour. */
const RETRY_MS = [15 * MINUTE_MS, HOUR_MS, 4 * HOUR_MS, 12 * HOUR_MS, DAY_MS] as const;
const PAGE = 100;

export type IssueDeps = Pick<Platform, "store" | "clock" | "settings">;

/** One certificate to ask for. */
interface Order {
  names: string[];
  domain: Resource | null;
}

export async function issueCertificates(deps: IssueDeps, signal: AbortSignal): Promise<void> {
  const { store, clock, settings } = deps;
  const { acme } = settings;
  if (acme === null) return;
  const known = new Map((await store.certificates.list()).map((record) => [record.name, record]));
  const orders = await ordersFor(deps, acme);
  const nowMs = clock.now();
  const due = orders.filter(({ names }) => isDue(names, known, nowMs));
  if (due.length === 0) return;
  await store.certificates.forgetOrders(nowMs - ORDER_WINDOW_MS);
  const recent = await store.certificates.ordersSince(nowMs - ORDER_WINDOW_MS);
  const client = new AcmeClient(acme);
  try {
    for (const order of takeTurns(due, ({ domain }) => workspaceOf(domain), recent)) {
      if (signal.aborted) return;
      if (!(await isStillDue(order, deps))) continue;
      if (!(await issueOne(order, client, acme, known, deps))) return;
    }
  } finally {
    await client.close();
  }
}

/** Another server may have asked meanwhile: one that took this task over from a server that was slow. */
async function isStillDue({ names }: Order, { store, clock }: IssueDeps): Promise<boolean> {
  const known = new Map<string, CertificateRecord>();
  for (const name of names) {
    const record = await store.certificates.get(name);
    if (record) known.set(name, record);
  }
  return isDue(names, known, clock.now());
}

/**
 * Returns false when the authority asked to wait without saying that the limit is one of these names: further orders
 * would be refused as well. A limit of one name, which its workspace can bring about, does not hold up others.
 */
async function issueOne(
  { names, domain }: Order,
  client: AcmeClient,
  acme: AcmeSettings,
  known: ReadonlyMap<string, CertificateRecord>,
  deps: IssueDeps,
): Promise<boolean> {
  const { store, clock } = deps;
  const domainUid = domain?.uid ?? "";
  try {
    client.use(await store.certificates.account(acme.directory, () => client.register()));
    await store.certificates.noteOrder(workspaceOf(domain), clock.now());
    const { chain, key } = await client.issue(names, solverFor(acme, deps));
    const { validFrom, validTo } = new X509Certificate(chain);
    const [notBefore, notAfter] = [Date.parse(validFrom), Date.parse(validTo)];
    const renewAt = notBefore + (notAfter - notBefore) * (RENEW_AT - Math.random() * JITTER);
    const times = { notBefore, notAfter, renewAt: Math.floor(renewAt) };
    await store.certificates.put(names, { domainUid, source: "acme", chain, key, ...times });
    await removeCovered(names, domainUid, deps);
    await tell(
      domain,
      "certificate-issued",
      `A certificate for ${names.join(", ")} is served until ${toIso(notAfter)}.`,
      deps,
    );
    return true;
  } catch (error) {
    if (!(error instanceof AcmeError)) throw error;
    const [first = ""] = names;
    const before = known.get(first);
    const waitMs = RETRY_MS[Math.min(before?.failures ?? 0, RETRY_MS.length - 1)] ?? DAY_MS;
    const retryAt = clock.now() + Math.max(waitMs, error.retryAfterMs ?? 0);
    for (const name of names) await store.certificates.fail(name, domainUid, error.message, retryAt);
    if (before?.failure !== error.message) await tell(domain, "certificate-failed", error.message, deps);
    return error.retryAfterMs === null || error.isAbout(names);
  }
}

/**
 * Removes certificates of single names that a wildcard of the same domain now stands for. An exact name comes first in a
 * handshake, and one that was issued before the operator changed to dns-01 is never ordered again.
 */
async function removeCovered(names: readonly string[], domainUid: string, { store }: IssueDeps): Promise<void> {
  const isCovered = (name: string): boolean => !names.includes(name) && names.includes(name.replace(/^[^.]+/, "*"));
  const records = await store.certificates.list(domainUid);
  const covered = records.filter(({ source, name }) => source === "acme" && isCovered(name));
  await store.certificates.remove(covered.map(({ name }) => name));
}

const workspaceOf = (domain: Resource | null): string => domain?.workspace ?? PLATFORM;

async function tell(domain: Resource | null, type: string, message: string, { store }: IssueDeps): Promise<void> {
  if (domain) await store.resources.update(domain.workspace, domain.uid, () => ({ event: { type, message } }));
}

function isDue(names: readonly string[], known: ReadonlyMap<string, CertificateRecord>, nowMs: number): boolean {
  const records = names.map((name) => known.get(name));
  if (records.some((record) => record !== undefined && record.retryAt > nowMs)) return false;
  return records.some((record) => record === undefined || record.chain === "" || isRenewable(record, nowMs));
}

/** A certificate that was revoked without a new order stays the last one of its name. */
const isRenewable = ({ renewAt, revokedAt }: CertificateRecord, nowMs: number): boolean =>
  renewAt <= nowMs && (revokedAt === 0 || renewAt > 0);

async function ordersFor(deps: IssueDeps, acme: AcmeSettings): Promise<Order[]> {
  const { store } = deps;
  const orders: Order[] = platformOrder(deps, acme);
  for (let after = ""; ; ) {
    const page = await store.resources.listAcrossWorkspaces("customdomain", after, PAGE);
    for (const domain of page)
      if (isVerified(domain) && domain.deletedAt === null && !domain.retired)
        orders.push(...(await ordersOf(domain, acme, deps)).flatMap((order) => withoutPlatformNames(order, deps)));
    if (page.length < PAGE) return orders;
    after = page.at(-1)?.uid ?? "";
  }
}

async function ordersOf(domain: Resource, { challenge }: AcmeSettings, deps: IssueDeps): Promise<Order[]> {
  const { store } = deps;
  const uploaded = (await store.certificates.list(domain.uid))
    .filter(({ source }) => source === "upload")
    .map(({ name }) => name);
  const isUploaded = (host: string): boolean =>
    uploaded.includes(host) || uploaded.includes(host.replace(/^[^.]+/, "*"));
  if (domain.spec.domainType === "applications")
    return isUploaded(domain.name) ? [] : [{ names: [domain.name], domain }];
  // Only by DNS can a wildcard be proved; otherwise each host in use gets a certificate.
  if (challenge === "dns-01") return uploaded.length > 0 ? [] : [{ names: [domain.name, `*.${domain.name}`], domain }];
  const orders: Order[] = [];
  for (const { word, workspace } of await store.claims.heldBelow(HOST, domain.name))
    if (!isUploaded(word) && (await mayServe(word, workspace, deps))) orders.push({ names: [word], domain });
  return orders;
}

/** The platform orders certificates for its own names itself. */
function withoutPlatformNames({ names, domain }: Order, { settings }: IssueDeps): Order[] {
  const kept = names.filter((name) => !belongsToPlatform(name, settings));
  return kept.length === 0 ? [] : [{ names: kept, domain }];
}

/** The names of the platform itself, unless the operator brings a certificate for them. */
function platformOrder({ settings }: IssueDeps, { challenge }: AcmeSettings): Order[] {
  const { domain, region, publicUrl } = settings;
  if (settings.ownCertificate || publicUrl === "") return [];
  const hosts = [new URL(publicUrl).hostname, new URL(pagesUrl(settings)).hostname];
  const below =
    domain === null
      ? []
      : [domain, `*.${domain}`, `*.${region}.${domain}`, `*.${PREVIEW_LABEL}.${domain}`, `*.${S3_LABEL}.${domain}`];
  const wanted = challenge === "dns-01" ? [...below, ...hosts] : hosts;
  const names = [...new Set(wanted)].filter(
    (name) => isIP(name.replace(/^\[|\]$/g, "")) === 0 && !isLoopbackName(name),
  );
  // A wildcard already stands for the names one label below it.
  const plain = names.filter((name) => !names.includes(name.replace(/^[^.*]+/, "*")) || name.startsWith("*"));
  return plain.length === 0 ? [] : [{ names: plain, domain: null }];
}
