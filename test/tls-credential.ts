/** An authority of a test, and certificates of hosts that the authority signed. */
import { CertificateSigner, type Credential, makeAuthority } from "../src/lib/x509/certificate.ts";

const HOUR_MS = 3_600_000;

export function testAuthority(name = "authority of a test") {
  const validity = { fromMs: Date.now() - HOUR_MS, untilMs: Date.now() + 24 * HOUR_MS };
  const authority = makeAuthority(name, validity);
  const signer = new CertificateSigner(authority, name);
  return {
    certificate: authority.certificate,
    credentialOf: (host: string): Credential => signer.hostCertificate(host, validity),
  };
}
