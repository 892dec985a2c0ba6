/** Which operation a request asks for, as data: the first row that fits. */
import type { Answer, BucketLister, S3Call } from "../call.ts";
import { S3Error } from "../wire/s3-error.ts";
import type { S3Request } from "../wire/s3-request.ts";
import * as bucket from "./bucket.ts";
import * as lists from "./lists.ts";
import * as parts from "./multipart.ts";
import * as reads from "./reads.ts";
import * as writes from "./writes.ts";

/** About no drive: which drives there are. */
interface ServiceOperation {
  method: string;
  on: "service";
  query?: never;
  header?: never;
  run(request: S3Request, buckets: BucketLister): Promise<Answer>;
}

interface DriveOperation {
  method: string;
  on: "bucket" | "object";
  /** Query parameters that all have to be there. */
  query?: readonly string[];
  /** A header that has to be there. */
  header?: string;
  isWrite?: true;
  /** The action in the audit log. Parts are not there, the object that they become is. */
  audit?: string;
  run(call: S3Call): Promise<Answer>;
}

export type S3Operation = ServiceOperation | DriveOperation;

const COPY = "x-amz-copy-source";
const NONE: readonly string[] = [];
const PART = ["uploadId", "partNumber"];

export const S3_OPERATIONS: readonly S3Operation[] = [
  { method: "GET", on: "service", run: lists.listBuckets },
  { method: "HEAD", on: "bucket", run: bucket.headBucket },
  { method: "PUT", on: "bucket", isWrite: true, run: bucket.createBucket },
  {
    method: "POST",
    on: "bucket",
    query: ["delete"],
    isWrite: true,
    audit: "s3DeleteObjects",
    run: writes.deleteObjects,
  },
  { method: "GET", on: "bucket", query: ["location"], run: bucket.getBucketLocation },
  { method: "GET", on: "bucket", query: ["versioning"], run: bucket.getBucketVersioning },
  ...bucket.absentConfigurations,
  { method: "GET", on: "bucket", query: ["uploads"], run: parts.listMultipartUploads },
  { method: "GET", on: "bucket", query: ["list-type"], run: lists.listObjectsV2 },
  { method: "GET", on: "bucket", run: lists.listObjects },
  { method: "GET", on: "object", query: ["tagging"], run: reads.getObjectTagging },
  {
    method: "PUT",
    on: "object",
    query: ["tagging"],
    isWrite: true,
    audit: "s3PutObjectTagging",
    run: writes.putObjectTagging,
  },
  {
    method: "DELETE",
    on: "object",
    query: ["tagging"],
    isWrite: true,
    audit: "s3DeleteObjectTagging",
    run: writes.deleteObjectTagging,
  },
  { method: "POST", on: "object", query: ["uploads"], isWrite: true, run: parts.createMultipartUpload },
  { method: "PUT", on: "object", query: PART, header: COPY, isWrite: true, run: parts.uploadPartCopy },
  { method: "PUT", on: "object", query: PART, isWrite: true, run: parts.uploadPart },
  {
    method: "POST",
    on: "object",
    query: ["uploadId"],
    isWrite: true,
    audit: "s3CompleteMultipartUpload",
    run: parts.completeMultipartUpload,
  },
  {
    method: "DELETE",
    on: "object",
    query: ["uploadId"],
    isWrite: true,
    audit: "s3AbortMultipartUpload",
    run: parts.abortMultipartUpload,
  },
  { method: "GET", on: "object", query: ["uploadId"], run: parts.listParts },
  { method: "GET", on: "object", run: reads.getObject },
  { method: "HEAD", on: "object", run: reads.headObject },
  { method: "PUT", on: "object", header: COPY, isWrite: true, audit: "s3CopyObject", run: writes.copyObject },
  { method: "PUT", on: "object", isWrite: true, audit: "s3PutObject", run: writes.putObject },
  { method: "DELETE", on: "object", isWrite: true, audit: "s3DeleteObject", run: writes.deleteObject },
];

/** Query parameters that are part of an operation and not a name of another one. */
const PLAIN = new Set(
  (
    "list-type prefix delimiter marker max-keys encoding-type continuation-token start-after fetch-owner " +
    "key-marker upload-id-marker max-uploads part-number-marker max-parts max-buckets bucket-region " +
    "response-content-type response-content-language response-expires response-cache-control " +
    "response-content-disposition response-content-encoding partNumber x-id"
  ).split(" "),
);

/**
 * Members of a signature, and what SDKs move from headers into a presigned address without a change of meaning. Others
 * that they move there (a copy's source, metadata, tags) would be lost: such an address is refused.
 */
const SIGNED =
  /^x-amz-(?:algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256|checksum-.*|sdk-checksum-algorithm|user-agent)$/i;

export function operationOf(request: S3Request): S3Operation {
  const { method, bucket: name, key, pairs, query, header } = request;
  const on = name === "" ? "service" : key === "" ? "bucket" : "object";
  const names = pairs.map(([each]) => each).filter((each) => !PLAIN.has(each) && !SIGNED.test(each));
  const found = S3_OPERATIONS.find(
    (operation) =>
      operation.method === method &&
      operation.on === on &&
      (operation.query ?? NONE).every((each) => query(each) !== undefined) &&
      names.every((each) => (operation.query ?? NONE).includes(each)) &&
      (operation.header === undefined || header(operation.header) !== undefined),
  );
  if (found) return found;
  const asked = names.length === 0 ? "" : ` with ${names.join(", ")}`;
  throw new S3Error("NotImplemented", `Drives have no such operation: ${method} of ${on}${asked}.`);
}
