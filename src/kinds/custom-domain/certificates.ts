/** Certificates that people bring for their domains: which are accepted, and how they are shown. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { invalidField } from "../../contract/errors.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { CertificateRecord } from "../../store/certificates.ts";

const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Names of a domain's uploaded certificates: every server keeps each of them ready in memory. */
export const NAMES_MAX = 100;

export interface Uploaded {
  names: string[];
  chain: string;
  key: string;
  notBefore: number;
  notAfter: number;
}

/** Requires a chain that belongs to the key, is valid now, and is for names at or below the domain only. */
export function checkedUpload(
  { certificate, privateKey }: { certificate: string; privateKey: string },
  domain: string,
  nowMs: number,
): Uploaded {
  const chain = (certificate.match(PEM) ?? []).map((pem) => parsed("certificate", () => new X509Certificate(pem)));
  const [leaf] = chain;
  if (!leaf) throw invalidField("certificate", "must be PEM and begin with the certificate of the domain");
  const key = parsed("privateKey", () => createPrivateKey(privateKey));
  if (!leaf.checkPrivateKey(key)) throw invalidField("privateKey", "does not belong to the certificate");
  for (const [index, one] of chain.entries()) {
    const above = chain[index + 1];
    if (above && !one.verify(above.publicKey))
      throw invalidField("certificate", `certificate ${index + 1} is not signed by the one behind it`);
  }
  const [notBefore, notAfter] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  if (notBefore > nowMs) throw invalidField("certificate", `is not valid before ${toIso(notBefore)}`);
  if (notAfter <= nowMs) throw invalidField("certificate", `has expired (${toIso(notAfter)})`);
  const names = dnsNames(leaf);
  const foreign = names.find((name) => name.replace(/^\*\./, "") !== domain && !name.endsWith(`.${domain}`));
  if (names.length === 0) throw invalidField("certificate", "names no host (subjectAltName)");
  if (foreign !== undefined) throw invalidField("certificate", `is for ${foreign}, which is not at or below ${domain}`);
  const text = chain.map((one) => one.toString()).join("");
  const keyText = key.export({ type: "pkcs8", format: "pem" }).toString();
  requireUsable(text, keyText);
  return { names, chain: text, key: keyText, notBefore, notAfter };
}

/** Keys that are too short, for one, can be read and not be served. */
function requireUsable(cert: string, key: string): void {
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw invalidField("certificate", `cannot be served: ${(error as Error).message}`);
  }
}

function parsed<T>(field: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw invalidField(field, "cannot be read: it must be PEM and not encrypted");
  }
}

export const dnsNames = ({ subjectAltName = "" }: X509Certificate): string[] =>
  subjectAltName
    .split(", ")
    .filter((name) => name.startsWith("DNS:"))
    .map((name) => name.slice("DNS:".length).toLowerCase());

export function presentCertificate({ name, source, chain, failure, ...times }: CertificateRecord) {
  const { notBefore, notAfter, renewAt, revokedAt } = times;
  return {
    name,
    source,
    ...(chain === ""
      ? {}
      : {
          issuer: new X509Certificate(chain).issuer.replaceAll("\n", ", "),
          notBefore: toIso(notBefore),
          notAfter: toIso(notAfter),
        }),
    ...(renewAt === 0 ? {} : { renewsAt: toIso(renewAt) }),
    ...(revokedAt === 0 ? {} : { revokedAt: toIso(revokedAt) }),
    ...(failure === "" ? {} : { failure }),
  };
}
