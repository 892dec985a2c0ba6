/** The store of trusted certificates that Java reads (JKS). Java reads neither PEM files nor variables of the environment. */
import { createHash, X509Certificate } from "node:crypto";

const MAGIC = 0xfeedfeed;
const VERSION = 2;
const TRUSTED_CERTIFICATE = 2;
/** The password of Java's own store, which everybody knows: the store holds no secret. */
const PASSWORD = "changeit";
/** A part of the format's checksum. */
const SALT = "Mighty Aphrodite";

export function javaTrustStore(certificates: readonly string[]): Buffer {
  const entries = certificates.map((pem, index) => {
    const der = new X509Certificate(pem).raw;
    return Buffer.concat([
      word(TRUSTED_CERTIFICATE),
      text(`authority-${index}`),
      word(0),
      word(0),
      text("X.509"),
      word(der.length),
      der,
    ]);
  });
  const content = Buffer.concat([word(MAGIC), word(VERSION), word(entries.length), ...entries]);
  const password = Buffer.from(PASSWORD, "utf16le").swap16();
  return Buffer.concat([content, createHash("sha1").update(password).update(SALT).update(content).digest()]);
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function text(value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(value.length);
  return Buffer.concat([length, Buffer.from(value, "latin1")]);
}
