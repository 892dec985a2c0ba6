/** The certificate of the server itself: the operator's files, or one of the server's own authority. */
import { readFileSync, unwatchFile, watchFile } from "node:fs";
import type { Config } from "../../config.ts";
import { type Clock, DAY_MS } from "../../lib/time/clock.ts";
import type { Credential } from "../../lib/x509/certificate.ts";
import { namesOfThisMachine, openOwnAuthority } from "../../lib/x509/own-authority.ts";

const CERTIFICATE_LOOK_MS = 5000;
/** A certificate of the own authority is replaced long before its end, also in a server that is never restarted. */
const OWN_RENEW_MS = 14 * DAY_MS;

export interface DefaultCertificate {
  first: Credential;
  /** Calls the listener with every later certificate. */
  follow(listener: (next: Credential) => void): void;
  stop(): void;
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
  return {
    first: read(),
    follow: (listener) =>
      watchFile(certFile, { interval: CERTIFICATE_LOOK_MS }, () => {
        try {
          listener(read());
        } catch {
          // A certificate may be half written while it is replaced; the old one is used until the next check.
        }
      }),
    stop: () => unwatchFile(certFile),
  };
}

function fromOwnAuthority(
  { data, domain, region }: CertificateConfig,
  names: readonly string[],
  clock: Clock,
): DefaultCertificate {
  const authority = openOwnAuthority(data, clock);
  const below =
    domain === undefined ? [] : [domain, ...["", `${region}.`, "preview."].map((part) => `*.${part}${domain}`)];
  const make = (): Credential => authority.certificateFor([...new Set([...names, ...namesOfThisMachine(), ...below])]);
  let timer: NodeJS.Timeout | undefined;
  return {
    first: make(),
    follow(listener) {
      timer = setInterval(() => listener(make()), OWN_RENEW_MS).unref();
    },
    stop: () => clearInterval(timer),
  };
}
