/** The certificate of the server itself: the operator's files, or one of the server's own authority. */
import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Config } from "../../config.ts";
import { PREVIEW_LABEL, S3_LABEL } from "../../contract/addresses.ts";
import { type Clock, DAY_MS } from "../../lib/time/clock.ts";
import type { Credential } from "../../lib/x509/certificate.ts";
import { namesOfThisMachine, openOwnAuthority } from "../../lib/x509/own-authority.ts";
import { asNode } from "./tls-server.ts";

const CERTIFICATE_LOOK_MS = 5000;
/** A certificate of the own authority is replaced long before its end, also in a server that is never restarted. */
const OWN_RENEW_MS = 14 * DAY_MS;

export interface DefaultCertificate {
  current(): Credential;
  /** Calls the listener with every later certificate. */
  follow(listener: (next: Credential) => void): void;
  stop(): void;
}

/** A certificate that is replaced by whatever `renew` is called with. `begin` returns what ends that. */
export function renewedCertificate(
  first: Credential,
  begin: (renew: (next: Credential) => void) => () => void,
): DefaultCertificate {
  let current = first;
  const listeners = new Set<(next: Credential) => void>();
  const stop = begin((next) => {
    current = next;
    for (const listener of listeners) listener(next);
  });
  return { current: () => current, follow: (listener) => void listeners.add(listener), stop };
}

type CertificateConfig = Pick<Config, "data" | "domain" | "region" | "tls_cert" | "tls_key">;

export function openDefaultCertificate(
  config: CertificateConfig,
  names: readonly string[],
  clock: Clock,
): DefaultCertificate {
  const { tls_cert: certFile, tls_key: keyFile } = config;
  return certFile !== undefined && keyFile !== undefined
    ? fromFiles(certFile, keyFile)
    : fromOwnAuthority(config, names, clock);
}

function fromFiles(certFile: string, keyFile: string): DefaultCertificate {
  const read = (): Credential => ({
    certificate: readFileSync(certFile, "utf8"),
    key: readFileSync(keyFile, "utf8"),
  });
  return renewedCertificate(read(), (renew) => {
    const look = (): void => {
      try {
        const next = read();
        createSecureContext(asNode(next));
        renew(next);
      } catch {
        // While the two files are replaced, one may be half written, or not belong to the other yet.
      }
    };
    const files = [certFile, keyFile];
    for (const file of files) watchFile(file, { interval: CERTIFICATE_LOOK_MS }, look);
    return () => {
      for (const file of files) unwatchFile(file, look);
    };
  });
}

function fromOwnAuthority(
  { data, domain, region }: CertificateConfig,
  names: readonly string[],
  clock: Clock,
): DefaultCertificate {
  const authority = openOwnAuthority(data, clock);
  const below =
    domain === undefined
      ? []
      : [domain, ...["", `${region}.`, `${PREVIEW_LABEL}.`, `${S3_LABEL}.`].map((part) => `*.${part}${domain}`)];
  const make = (): Credential => authority.certificateFor([...new Set([...names, ...namesOfThisMachine(), ...below])]);
  return renewedCertificate(make(), (renew) => {
    const timer = setInterval(() => renew(make()), OWN_RENEW_MS).unref();
    return () => clearInterval(timer);
  });
}
