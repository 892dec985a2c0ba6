/** Revocation of certificates that an authority issued: at the authority first, then in the records. */
import type { z } from "zod";
import { AcmeClient, AcmeError, type AcmeSettings } from "../../acme/acme-client.ts";
import type { RevocationReason } from "../../acme/revocation-reason.ts";
import type { Caller } from "../../contract/caller.ts";
import { PlatformError } from "../../contract/errors.ts";
import { DAY_MS, SECOND_MS } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { revocationShape } from "../certificate/shapes.ts";
import type { Platform } from "../port.ts";
import { PLATFORM } from "./order-turns.ts";

/**
 * Revocations of one workspace in a day. Each may be followed by an order, and all workspaces share the orders that the
 * authority allows the platform's account.
 */
export const REVOCATIONS_MAX = 20;

export interface Revocation {
  /** The certificate of this name; null for all that an authority issued for the domain, or for the platform. */
  name: string | null;
  reason: RevocationReason;
  /** Whether the platform asks for a new certificate. */
  reissue: boolean;
  actor: string;
}

/** The revocation that a call asks for. */
export function askedRevocation({ body, caller }: AskingCall): Revocation {
  const { name = null, reason = "unspecified", reissue = true } = body ?? {};
  return { name, reason, reissue, actor: caller.displayName };
}

interface AskingCall {
  body?: z.output<typeof revocationShape> | undefined;
  caller: Pick<Caller, "displayName">;
}

export type RevocationDeps = Pick<Platform, "store" | "clock" | "settings">;

/** `domain` is null for the platform's own names. */
export async function revokeCertificates(
  domain: Resource | null,
  revocation: Revocation,
  deps: RevocationDeps,
): Promise<void> {
  const { acme } = deps.settings;
  const chosen = await chosenCertificates(domain, revocation, deps);
  if (acme === null)
    throw new PlatformError("bad_request", "No certificate authority is configured (BERTH_ACME_DIRECTORY).");
  await countRevocation(domain?.workspace ?? PLATFORM, deps);
  for (const [chain, { names, isRevoked }] of chosen) {
    if (!isRevoked) await revokeOne(chain, names, revocation.reason, acme, deps);
    await record(domain, chain, names, revocation, deps);
  }
}

async function record(
  domain: Resource | null,
  chain: string,
  names: string[],
  { reissue, actor, reason }: Revocation,
  { store, clock }: RevocationDeps,
): Promise<void> {
  const nowMs = clock.now();
  await store.certificates.revoked(chain, nowMs, reissue ? nowMs : 0);
  if (domain === null) return;
  const next = reissue ? "The platform asks for a new one." : "The platform asks for no new one.";
  const message = `${actor} revoked the certificate for ${names.join(", ")} (${reason}). ${next}`;
  await store.resources.update(domain.workspace, domain.uid, () => ({
    event: { type: "certificate-revoked", message },
    actor,
  }));
}

/** By chain, because one certificate may be for several names. */
async function chosenCertificates(domain: Resource | null, { name }: Revocation, { store }: RevocationDeps) {
  const records = (await store.certificates.list(domain?.uid ?? "")).filter(
    (one) => name === null || one.name === name,
  );
  const issued = records.filter(({ source, chain }) => source === "acme" && chain !== "");
  if (issued.length === 0 && records.some(({ source }) => source === "upload"))
    throw new PlatformError(
      "bad_request",
      "The certificate was uploaded: have it revoked by the authority that issued it, then upload another or remove it.",
    );
  if (issued.length === 0)
    throw new PlatformError(
      "not_found",
      `There is no certificate from an authority${name === null ? "" : ` for '${name}'`}: nothing was revoked.`,
    );
  const chosen = new Map<string, { names: string[]; isRevoked: boolean }>();
  for (const { chain, name: host, revokedAt } of issued)
    chosen.set(chain, { names: [...(chosen.get(chain)?.names ?? []), host], isRevoked: revokedAt > 0 });
  return chosen;
}

async function revokeOne(
  chain: string,
  [name = ""]: string[],
  reason: RevocationReason,
  acme: AcmeSettings,
  { store }: RevocationDeps,
): Promise<void> {
  const client = new AcmeClient(acme);
  try {
    if (reason === "keyCompromise") await client.revoke(chain, reason, await store.certificates.keyOf(name));
    else {
      client.use(await store.certificates.account(acme.directory, refuseStranger));
      await client.revoke(chain, reason);
    }
  } catch (error) {
    if (!(error instanceof AcmeError)) throw error;
    throw new PlatformError("bad_gateway", `The certificate for ${name} was not revoked. ${error.message}`, {
      cause: error,
    });
  } finally {
    await client.close();
  }
}

function refuseStranger(): never {
  throw new AcmeError("It is from another authority than the one that is configured now (BERTH_ACME_DIRECTORY).");
}

async function countRevocation(workspace: string, { store, clock }: RevocationDeps): Promise<void> {
  const nowMs = clock.now();
  const waitMs = await store.records.update(`acme-revocations/${workspace}`, nowMs + DAY_MS, (value) => {
    const recent = (JSON.parse(value ?? "[]") as number[]).filter((at) => at > nowMs - DAY_MS);
    const [oldest = nowMs] = recent;
    return recent.length < REVOCATIONS_MAX
      ? { value: JSON.stringify([...recent, nowMs]), result: 0 }
      : { value: JSON.stringify(recent), result: oldest + DAY_MS - nowMs };
  });
  if (waitMs > 0)
    throw new PlatformError(
      "too_many_requests",
      `A workspace revokes certificates ${REVOCATIONS_MAX} times a day at most.`,
      { headers: { "retry-after": String(Math.ceil(waitMs / SECOND_MS)) } },
    );
}
