/** The checksums that clients send with an object, by the name of their header. */
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { S3Error } from "../wire/s3-error.ts";
import { type Crc, createCrc32c, createCrc64Nvme } from "./crc.ts";

export const CHECKSUM_NAMES = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"] as const;
export type ChecksumName = (typeof CHECKSUM_NAMES)[number];

/** A checksum of a whole object, or of the checksums of its parts. */
export type ChecksumType = "FULL_OBJECT" | "COMPOSITE";

export interface Checksum {
  name: ChecksumName;
  /** Base64; followed by -N for a composite of N parts. */
  value: string;
  type: ChecksumType;
}

const BYTES: Readonly<Record<ChecksumName, number>> = { CRC32: 4, CRC32C: 4, CRC64NVME: 8, SHA1: 20, SHA256: 32 };

export const headerOf = (name: ChecksumName): string => `x-amz-checksum-${name.toLowerCase()}`;
export const memberOf = (name: ChecksumName): string => `Checksum${name}`;

export function checksumNamed(text: string): ChecksumName {
  const name = CHECKSUM_NAMES.find((one) => one === text.toUpperCase());
  if (name === undefined)
    throw new S3Error("InvalidRequest", `There is no checksum '${text}'; known are ${CHECKSUM_NAMES.join(", ")}.`);
  return name;
}

/** The checksum that a header or a trailer names; null for other names. */
export const checksumOfHeader = (header: string): ChecksumName | null =>
  CHECKSUM_NAMES.find((name) => headerOf(name) === header) ?? null;

export function requireWellFormed(name: ChecksumName, value: string): void {
  if (
    !/^[A-Za-z0-9+/]+=*(-\d{1,5})?$/.test(value) ||
    Buffer.from(value.replace(/-\d+$/, ""), "base64").length !== BYTES[name]
  )
    throw new S3Error("InvalidRequest", `Value for ${headerOf(name)} header is invalid.`);
}

const CREATE: Readonly<Record<ChecksumName, () => Crc>> = {
  CRC32: createCrc32,
  CRC32C: createCrc32c,
  CRC64NVME: createCrc64Nvme,
  SHA1: () => hashing("sha1"),
  SHA256: () => hashing("sha256"),
};

export const createChecksum = (name: ChecksumName): Crc => CREATE[name]();

/** The checksum over the checksums of the parts. */
export function compositeOf(name: ChecksumName, parts: readonly string[]): string {
  const sum = createChecksum(name);
  for (const part of parts) sum.update(Buffer.from(part, "base64"));
  return `${sum.digest().toString("base64")}-${parts.length}`;
}

function hashing(algorithm: string): Crc {
  const hash = createHash(algorithm);
  return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest() };
}

function createCrc32(): Crc {
  let crc = 0;
  return {
    update(bytes) {
      crc = crc32(bytes, crc);
    },
    digest() {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(crc);
      return bytes;
    },
  };
}
