/**
 * A certificate authority of this server's own, for machines whose names no public authority vouches for. Its key stays
 * in the data folder; people trust its certificate once (`berth trust`), after they compared the fingerprint.
 */
import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { type Clock, DAY_MS } from "../time/clock.ts";
import { CertificateSigner, type Credential, makeAuthority, type Validity } from "./certificate.ts";

/** File with the certificate of the authority, in the data folder. */
export const AUTHORITY_FILE = join("tls", "ca.pem");
const KEY_FILE = join("tls", "ca.key");
const NAME = "Berth of this machine";
const AUTHORITY_DAYS = 3650;
/** Browsers refuse certificates for servers with a longer life. */
const SERVER_DAYS = 397;
/** Clocks of clients may be behind. */
const EARLIER_MS = DAY_MS;

export interface OwnAuthority {
  /** The certificate is followed by that of the authority. */
  certificateFor(names: readonly string[]): Credential;
}

/** SHA-256 of the authority's certificate, as tools print it. */
export const authorityFingerprint = (dataDir: string): string =>
  new X509Certificate(readFileSync(join(dataDir, AUTHORITY_FILE))).fingerprint256;

/** Makes the authority at the first start. */
export function openOwnAuthority(dataDir: string, clock: Clock): OwnAuthority {
  if (!existsSync(join(dataDir, AUTHORITY_FILE))) make(dataDir, clock.now());
  const authority = readFileSync(join(dataDir, AUTHORITY_FILE), "utf8");
  const key = readFileSync(join(dataDir, KEY_FILE), "utf8");
  const signer = new CertificateSigner({ certificate: authority, key }, NAME);
  return {
    certificateFor([first = "localhost", ...others]) {
      const { certificate, ...made } = signer.hostCertificate(first, lifeFrom(clock.now(), SERVER_DAYS), others);
      return { certificate: certificate + authority, ...made };
    },
  };
}

/** The certificate is written last: a start that was cut off begins anew. */
function make(dataDir: string, nowMs: number): void {
  mkdirSync(join(dataDir, "tls"), { recursive: true, mode: 0o700 });
  const { certificate, key } = makeAuthority(NAME, lifeFrom(nowMs, AUTHORITY_DAYS));
  write(join(dataDir, KEY_FILE), key);
  write(join(dataDir, AUTHORITY_FILE), certificate);
}

const lifeFrom = (nowMs: number, days: number): Validity => ({
  fromMs: nowMs - EARLIER_MS,
  untilMs: nowMs + days * DAY_MS,
});

function write(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}

/** Names and addresses by which this machine may be called. */
export function namesOfThisMachine(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const host = hostname().toLowerCase();
  return [
    "localhost",
    "*.localhost",
    ...(/^[a-z0-9.-]+$/.test(host) ? [host, ...(host.includes(".") ? [] : [`${host}.local`])] : []),
    // Link-local addresses are only valid together with an interface, which a certificate cannot name.
    ...addresses.filter(({ scopeid }) => !scopeid).map(({ address }) => address),
  ];
}
