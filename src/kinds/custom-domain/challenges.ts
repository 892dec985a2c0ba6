/**
 * Answers to challenges of certificate authorities, for every server of the database: whichever server the authority
 * reaches can answer. By HTTP and by TLS the answer is a short-lived record; by DNS the operator's program writes it.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { AcmeError, type AcmeSettings, type Solver } from "../../acme/acme-client.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/time/clock.ts";
import { type Credential, makeChallengeCertificate } from "../../lib/x509/certificate.ts";
import type { Platform } from "../port.ts";

const KEPT_MS = HOUR_MS;
const HOOK_MS = 5 * MINUTE_MS;
const TOKEN = /^[\w-]{1,256}$/;

type ChallengeDeps = Pick<Platform, "store" | "clock">;

const byHttp = (token: string): string => `acme-http/${token}`;
const byTls = (host: string): string => `acme-tls/${host}`;

export function solverFor({ challenge, hook }: AcmeSettings, { store, clock }: ChallengeDeps): Solver {
  const keep = async (key: string, value: string): Promise<() => Promise<void>> => {
    await store.records.update(key, clock.now() + KEPT_MS, () => ({ value, result: null }));
    return () => store.records.remove(key);
  };
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  switch (challenge) {
    case "http-01":
      return ({ token, keyAuthorization }) => keep(byHttp(token), keyAuthorization);
    case "tls-alpn-01":
      return ({ host, keyAuthorization }) => {
        const validity = { fromMs: Date.now() - DAY_MS, untilMs: Date.now() + DAY_MS };
        const made = makeChallengeCertificate(host, digest(keyAuthorization), validity);
        return keep(byTls(host), JSON.stringify(made));
      };
    case "dns-01":
      return async ({ host, keyAuthorization }) => {
        const words = [`_acme-challenge.${host}`, digest(keyAuthorization).toString("base64url")];
        await runHook(hook, ["set", ...words]);
        return () => runHook(hook, ["unset", ...words]);
      };
  }
}

async function runHook(program: string | null, words: string[]): Promise<void> {
  if (program === null) throw new AcmeError("dns-01 needs a program that writes DNS records (acme_hook).");
  try {
    await promisify(execFile)(program, words, { timeout: HOOK_MS });
  } catch (error) {
    const { stderr = "", message } = error as Error & { stderr?: string };
    throw new AcmeError(`${program} ${words[0]} failed: ${stderr.trim().slice(0, 500) || message}`, null, {
      cause: error,
    });
  }
}

/** The answer to a request of the authority by HTTP; null when nobody waits for it. */
export const httpAnswer = async (token: string, { store }: Pick<ChallengeDeps, "store">): Promise<string | null> =>
  TOKEN.test(token) ? store.records.read(byHttp(token)) : null;

/** The certificate for a handshake of the authority; null when nobody waits for it. */
export async function tlsAnswer(host: string, { store }: Pick<ChallengeDeps, "store">): Promise<Credential | null> {
  const kept = await store.records.read(byTls(host));
  return kept === null ? null : (JSON.parse(kept) as Credential);
}
