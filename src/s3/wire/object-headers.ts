/** Headers that are kept with an object, read from a write and written to a read. */
import { checksumNamed, headerOf } from "../checksums/checksums.ts";
import type { StoredObject } from "../files/drive-objects.ts";
import type { ObjectRecord } from "../files/records.ts";
import { S3Error } from "./s3-error.ts";
import type { S3Request } from "./s3-request.ts";
import { tagsOfHeader } from "./tags.ts";

const KEPT = ["content-type", "cache-control", "content-disposition", "content-language", "expires"];
const META = "x-amz-meta-";
const META_BYTES_MAX = 2048;
const DEFAULT_TYPE = "binary/octet-stream";

type Described = Pick<ObjectRecord, "headers" | "metadata" | "tags">;

/** What asks for an ability that the door does not have, and the only values that change nothing. */
const WITHOUT_EFFECT: Readonly<Record<string, readonly string[]>> = {
  "x-amz-acl": ["private", "bucket-owner-full-control", "bucket-owner-read"],
  "x-amz-storage-class": ["STANDARD"],
};
const UNSUPPORTED =
  /^x-amz-(grant-|server-side-encryption|object-lock-|website-redirect-location|write-offset-bytes|copy-source-server-side)/;

export function requireSupported({ headers, header }: S3Request): void {
  for (const name of headers.keys()) {
    const plain = WITHOUT_EFFECT[name];
    if (UNSUPPORTED.test(name) || (plain && !plain.includes(header(name) ?? "")))
      throw new S3Error(
        "NotImplemented",
        `The header ${name}: ${header(name)} asks for something that drives do not have.`,
      );
  }
}

export function describedBy(request: S3Request): Described {
  const { headers, header } = request;
  const kept = KEPT.flatMap((name) => (header(name) === undefined ? [] : [[name, header(name) ?? ""]]));
  // aws-chunked is the coding of the transfer, not of the object.
  const coding = (header("content-encoding") ?? "").split(",").map((word) => word.trim());
  const own = coding.filter((word) => word !== "" && word !== "aws-chunked").join(",");
  const metadata = [...headers.keys()].flatMap((name) =>
    name.startsWith(META) ? [[name.slice(META.length), header(name) ?? ""]] : [],
  );
  if (metadata.flat().reduce((sum, text) => sum + Buffer.byteLength(text), 0) > META_BYTES_MAX)
    throw new S3Error("MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size");
  return {
    headers: Object.fromEntries([...kept, ...(own === "" ? [] : [["content-encoding", own]])]),
    metadata: Object.fromEntries(metadata),
    tags: tagsOfHeader(header("x-amz-tagging")),
  };
}

/** Headers of an answer with an object; `withChecksum`: the client asked for its checksum. */
export function headersOf({ etag, modifiedMs, record }: StoredObject, withChecksum: boolean): Record<string, string> {
  const { headers = {}, metadata = {}, tags = {}, checksum = null } = record ?? {};
  const tagCount = Object.keys(tags).length;
  return {
    "content-type": DEFAULT_TYPE,
    ...headers,
    etag: `"${etag}"`,
    "last-modified": new Date(modifiedMs).toUTCString(),
    "accept-ranges": "bytes",
    ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`${META}${name}`, value])),
    ...(tagCount > 0 && { "x-amz-tagging-count": String(tagCount) }),
    ...(withChecksum &&
      checksum && { [headerOf(checksum.name)]: checksum.value, "x-amz-checksum-type": checksum.type }),
  };
}

/** The checksum that a client wants to have computed though it sends none. */
export const askedChecksum = ({ header }: S3Request) => {
  const name = header("x-amz-checksum-algorithm") ?? header("x-amz-sdk-checksum-algorithm");
  return name === undefined ? null : checksumNamed(name);
};
