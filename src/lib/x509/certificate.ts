/** Makes certificates: an authority that signs, and certificates of hosts that the authority signed. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from "node:crypto";
import { parseAddress } from "../network/address-class.ts";
import { bits, integer, objectId, octets, sequence, set, TRUE, tagged, time, utf8 } from "./der.ts";

/** A certificate and its private key, both as PEM text. */
export interface Credential {
  certificate: string;
  key: string;
}

/** From and until when, in milliseconds. */
export interface Validity {
  fromMs: number;
  untilMs: number;
}

const ID = {
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  commonName: "2.5.4.3",
  subjectKeyId: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyId: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  acmeIdentifier: "1.3.6.1.5.5.7.1.31",
  extensionRequest: "1.2.840.113549.1.9.14",
} as const;

const ALGORITHM = sequence(objectId(ID.ecdsaWithSha256));
const VERSION_3 = tagged(0xa0, integer(Uint8Array.of(2)));
/** Key usage bits: certificates and lists of revoked ones; digital signatures. */
const SIGNS_CERTIFICATES = bits(Uint8Array.of(0x06), 1);
const SIGNS_DATA = bits(Uint8Array.of(0x80), 7);

export function makeAuthority(name: string, validity: Validity): Credential {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const extensions = [
    // No authority below this one.
    extension(ID.basicConstraints, sequence(TRUE, integer(Uint8Array.of(0))), true),
    extension(ID.keyUsage, SIGNS_CERTIFICATES, true),
    extension(ID.subjectKeyId, octets(keyId(publicKey))),
  ];
  const subject = nameOf(name);
  const certificate = signed({ subject, issuer: subject, publicKey, validity, extensions }, privateKey);
  return { certificate, key: pemOfKey(privateKey) };
}

/** Signs certificates with one authority. */
export class CertificateSigner {
  readonly #issuer: Buffer;
  readonly #key: KeyObject;

  constructor({ key }: Credential, name: string) {
    this.#key = createPrivateKey(key);
    this.#issuer = nameOf(name);
  }

  /** For a host name or an address, and for others beside it. */
  hostCertificate(host: string, validity: Validity, others: readonly string[] = []): Credential {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const extensions = [
      extension(ID.basicConstraints, sequence(), true),
      extension(ID.keyUsage, SIGNS_DATA, true),
      extension(ID.extendedKeyUsage, sequence(objectId(ID.serverAuth))),
      extension(ID.authorityKeyId, sequence(tagged(0x80, keyId(createPublicKey(this.#key))))),
      altNames([host, ...others]),
    ];
    const subject = nameOf(host.slice(0, COMMON_NAME_MAX));
    const certificate = signed({ subject, issuer: this.#issuer, publicKey, validity, extensions }, this.#key);
    return { certificate, key: pemOfKey(privateKey) };
  }
}

const COMMON_NAME_MAX = 64;

interface ToSign {
  subject: Buffer;
  issuer: Buffer;
  publicKey: KeyObject;
  validity: Validity;
  extensions: Buffer[];
}

function signed({ subject, issuer, publicKey, validity, extensions }: ToSign, key: KeyObject): string {
  const content = sequence(
    VERSION_3,
    integer(Uint8Array.of(1, ...randomBytes(15))),
    ALGORITHM,
    issuer,
    sequence(time(validity.fromMs), time(validity.untilMs)),
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(...extensions)),
  );
  const der = sequence(content, ALGORITHM, bits(sign("sha256", content, key)));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

const nameOf = (commonName: string): Buffer => sequence(set(sequence(objectId(ID.commonName), utf8(commonName))));

/** The extension with the names of a certificate. */
export function altNames(hosts: readonly string[]): Buffer {
  const names = hosts.map((host) => {
    const address = parseAddress(host);
    return address ? tagged(0x87, address) : tagged(0x82, Buffer.from(host, "latin1"));
  });
  return extension(ID.subjectAltName, sequence(...names));
}

/** A certificate that is signed with its own key, which serves nobody but the challenge of an authority (RFC 8737). */
export function makeChallengeCertificate(host: string, digest: Uint8Array, validity: Validity): Credential {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const subject = nameOf(host.slice(0, COMMON_NAME_MAX));
  const extensions = [altNames([host]), extension(ID.acmeIdentifier, octets(digest), true)];
  const certificate = signed({ subject, issuer: subject, publicKey, validity, extensions }, privateKey);
  return { certificate, key: pemOfKey(privateKey) };
}

/** A request for a certificate of these hosts (PKCS #10), in DER, and the key that the certificate will belong to. */
export function makeRequest(hosts: readonly string[]): { request: Buffer; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const wanted = sequence(objectId(ID.extensionRequest), set(sequence(altNames(hosts))));
  const spki = publicKey.export({ type: "spki", format: "der" });
  const content = sequence(integer(Uint8Array.of(0)), sequence(), spki, tagged(0xa0, wanted));
  const request = sequence(content, ALGORITHM, bits(sign("sha256", content, privateKey)));
  return { request, key: pemOfKey(privateKey) };
}

const extension = (id: string, value: Buffer, critical = false): Buffer =>
  sequence(objectId(id), ...(critical ? [TRUE] : []), octets(value));

const keyId = (key: KeyObject): Buffer =>
  createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest()
    .subarray(0, 20);

const pemOfKey = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();
